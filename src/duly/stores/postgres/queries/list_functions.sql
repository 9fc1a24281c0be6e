-- Our functions, alone and with the types of their arguments. Lock: none. Index: none. Differs: PostgreSQL only.
select p.proname::text, quote_ident(p.proname) || '(' || pg_get_function_identity_arguments(p.oid) || ')'
  from pg_proc p
 where p.pronamespace = to_regnamespace(quote_ident(%(schema)s::text))
