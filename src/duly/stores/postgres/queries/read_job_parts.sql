-- What a job record does not say of how its job was asked for. Lock, index: job_parts_1. Differs: none.
select priority, unique_key, unique_live, version, fair, serialise, blobs, followed, on_dead
  from {schema}.job_parts_1(%(id)s::bigint)
