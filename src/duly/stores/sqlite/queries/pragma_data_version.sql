-- Changes with every commit of another connection. Lock: none. Index: none. Differs: only here.
pragma data_version
