-- What was counted last of the waiting jobs that are too many to count for every look. Lock: none. Index: the table whole.
select state, queue, count, extreme, at from {prefix}_depth where at > :since
