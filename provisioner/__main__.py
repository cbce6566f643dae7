"""`python -m provisioner` is the same program as `provision`."""

from provisioner.cli.app import main

if __name__ == "__main__":
    main()
