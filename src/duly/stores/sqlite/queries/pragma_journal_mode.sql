-- The journal mode of the file. Lock: none. Differs: only here.
select journal_mode from pragma_journal_mode
