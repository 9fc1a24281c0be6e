-- The tasks of all live workers. Lock: none. A row per live process.
select tasks from {prefix}_worker
