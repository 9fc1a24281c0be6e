"""The photo site: upload a picture, follow its ticket, see its five thumbnails. `duly demo --site` opens all of it.

The handler is in `app`, what arrives is read in `uploads`, the pages are in `web`, and `run` starts the processes.
Written as an application of its own would be; knows nothing of the command line.
"""
