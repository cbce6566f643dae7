"""Run the program by `python -m provisioner`, equivalent to `provision`."""

from provisioner.cli.app import main

if __name__ == "__main__":
    main()
