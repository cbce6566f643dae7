"""Reading facts out of published artefacts themselves: wheels, shared libraries, GPU code; no wheel is fetched whole."""
