-- The batches inside one that are not cancelled. Lock: none. Index: parent.
select b.id from {prefix}_batch as b where b.parent = :id and b.state <> 'cancelled'
