"""The demo: photographs are resized by workers that get killed, and every file is checked afterwards.

The handlers are in `app`, the run is in `run`. Needs Pillow (`pip install 'duly[demo]'`); knows nothing of the
command line.
"""
