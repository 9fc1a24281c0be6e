-- Take a limit for a job, or turn what it has reserved into that. Lock: the write lock. Index: primary key, incarnation.
insert into {prefix}_hold (key, id, incarnation, until) values (:key, :id, :incarnation, :until)
on conflict (key, id) do update set incarnation = excluded.incarnation, until = excluded.until
