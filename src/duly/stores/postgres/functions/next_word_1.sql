-- When the next look at what stands in `released` is due; NULL for nothing. Begins behind the dead entries that mind_words_1
-- knows of, of words and of timers. Lock: none. Index: released_pkey, sweep_pkey. Differs: PostgreSQL only.
create function {schema}.next_word_1() returns timestamptz
language plpgsql stable as $$
begin
    return coalesce(
        (select r.due from released r
          where r.due = '-infinity' and r.number > coalesce((select s.position from sweep s where s.name = 'words'), 0)
          order by r.due, r.number limit 1),
        (select r.due from released r
          where r.due > coalesce((select s.last_at from sweep s where s.name = 'words'), '-infinity')
          order by r.due, r.number limit 1));
end
$$;
