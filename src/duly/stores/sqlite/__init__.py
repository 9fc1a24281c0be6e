"""The store on one SQLite file, shared by the processes of one machine. Knows nothing of other stores."""
