-- For wrk: posts the file that REQUEST names, if it names one, and counts bad answers.
local name = os.getenv("REQUEST")
if name ~= "" then
    local file = assert(io.open(name, "rb"))
    wrk.method = "POST"
    wrk.body = file:read("*a")
    wrk.headers["Content-Type"] = "application/json"
    file:close()
end

function done(summary)
    local bad = summary.errors
    io.write(string.format('{"calls": %d, "failed": %d, "seconds": %.6f}\n', summary.requests,
        bad.connect + bad.read + bad.write + bad.status + bad.timeout, summary.duration / 1e6))
end
