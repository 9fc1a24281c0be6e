-- What came of a try. Lock, index: settle_delivery_1. Differs: none.
select {schema}.settle_delivery_1(%(change)s::bigint, %(sink)s::text, %(state)s::text, %(wait)s::float8, %(error)s::text,
                                  %(now)s::timestamptz)
