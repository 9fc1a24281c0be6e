-- POST /v1/jobs, each request with a key of its own; writes down the id of every job that was answered with 202.
-- Arguments: the token, the task, a word that makes the keys of this run its own, and a folder ("" writes nothing down).
local threads = 0

function setup(thread)
  thread:set("number", threads)
  threads = threads + 1
end

function init(arguments)
  headers = {["Authorization"] = "Bearer " .. arguments[1], ["Content-Type"] = "application/json"}
  task, word = arguments[2], arguments[3]
  sent = 0
  if arguments[4] ~= "" then
    ids = io.open(arguments[4] .. "/" .. word .. "-" .. number .. ".ids", "w")
  end
end

function request()
  sent = sent + 1
  headers["Idempotency-Key"] = word .. "-" .. number .. "-" .. sent
  return wrk.format("POST", "/v1/jobs", headers, '{"task":"' .. task .. '","args":{"order_id":' .. sent .. "}}")
end

function response(status, _, body)
  if status == 202 and ids then
    ids:write(body:match('"job_id":"(%d+)"'), "\n")
    ids:flush()
  end
end

function done(summary, latency)
  io.write(string.format(
    "RESULT %d %d %d %.3f %.3f %.3f\n",
    summary.requests, summary.duration, summary.errors.status,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000, latency.max / 1000
  ))
end
