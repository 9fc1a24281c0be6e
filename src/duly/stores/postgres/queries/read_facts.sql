-- Facts about the server for people. Lock: none. Index: none. Differs: PostgreSQL only.
select current_setting('server_version'), current_database(), current_user::text, current_setting('synchronous_commit'),
       current_setting('fsync')
