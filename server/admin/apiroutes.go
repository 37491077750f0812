package admin

import "net/http"

var (
	queueKey  = param{name: "queue", doc: "key of the queue, pool/namespace/name, percent-encoded", required: true}
	stateName = param{name: "state", doc: "ready (the default), delayed, leased or dead"}
	poolName  = param{name: "pool", doc: "only this pool's"}
	pageFrom  = param{name: "from", doc: "how many to leave out", integer: true}
	pageCount = param{name: "count", doc: "at most 100, which is the default", integer: true}
)

// apiRoutes is the whole JSON API. It is filled by init, for the route that
// describes all routes is one of them.
var apiRoutes []apiRoute

func init() {
	get := func(path, summary string, reply any, handle func(*apiCall) (any, error), params ...param) {
		apiRoutes = append(apiRoutes, apiRoute{method: http.MethodGet, path: path, summary: summary, params: params, reply: reply, handle: handle})
	}
	post := func(path, summary, command string, body, reply any, handle func(*apiCall) (any, error), params ...param) {
		apiRoutes = append(apiRoutes, apiRoute{method: http.MethodPost, path: path, summary: summary, command: command, params: params, body: body, reply: reply, handle: handle})
	}

	get("/api/v1/openapi.json", "This description.", map[string]any{}, func(*apiCall) (any, error) { return openAPI(), nil })
	get("/api/v1/overview", "What is going on, from published numbers.", overviewReply{}, (*apiCall).overview)
	post("/api/v1/snapshot", "Write a snapshot now and wait for it.", "SNAPSHOT", dryBody{}, acted{}, (*apiCall).snapshot)
	post("/api/v1/drain", "Refuse new jobs, or take them again.", "DRAIN on|off", drainBody{}, acted{}, (*apiCall).drain)

	get("/api/v1/queues", "A page of the queues.", queuesReply{}, (*apiCall).listQueues,
		poolName,
		param{name: "match", doc: "part of the name, or a glob"},
		param{name: "sort", doc: "name (the default), ready, dead, leased, delayed or age"},
		pageFrom, pageCount)
	get("/api/v1/queue", "One queue as it is now.", queueJSON{}, (*apiCall).getQueue, queueKey)
	post("/api/v1/queue/pause", "Stop deliveries of a queue.", "QUEUE PAUSE queue [FOR ms]", pauseBody{}, acted{}, (*apiCall).pauseQueue, queueKey)
	post("/api/v1/queue/resume", "End a pause.", "QUEUE RESUME queue", dryBody{}, acted{}, (*apiCall).resumeQueue, queueKey)
	post("/api/v1/queue/purge", "Remove jobs of a queue by state.", "QUEUE PURGE queue [STATE …]", purgeBody{}, acted{}, (*apiCall).purgeQueue, queueKey)
	post("/api/v1/queue/redrive", "Move dead jobs back to ready, oldest first.", "QUEUE REDRIVE queue [COUNT n] [TO queue] [TRIES n] [TTL ms]", redriveBody{}, acted{}, (*apiCall).redriveQueue, queueKey)
	post("/api/v1/queue/settings", "Change the settings that are named.", "QUEUE SET queue setting value…", settingsBody{}, acted{}, (*apiCall).setQueue, queueKey)
	post("/api/v1/queue/reset", "Give a queue the default settings.", "QUEUE RESET queue", dryBody{}, acted{}, (*apiCall).resetQueue, queueKey)
	post("/api/v1/queue/delete", "Remove a queue and its jobs; refused while any is leased.", "QUEUE DELETE queue", dryBody{}, acted{}, (*apiCall).deleteQueue, queueKey)

	get("/api/v1/jobs", "A page of a queue's jobs in one state.", jobsReply{}, (*apiCall).listJobs, queueKey, stateName,
		param{name: "count", doc: "at most 100; 25 by default", integer: true},
		param{name: "after", doc: "next of the page before"},
		param{name: "match", doc: "part of the ID, payload, an attribute, key, group or last failure; at most 2,000 jobs are looked at"})
	post("/api/v1/jobs", "Add a job.", "ENQUEUE queue payload [options]", enqueueBody{}, enqueueReply{}, (*apiCall).enqueue, queueKey)
	get("/api/v1/job", "One job with its payload.", jobJSON{}, (*apiCall).getJob, param{name: "id", doc: "ID of the job", required: true})
	get("/api/v1/job/history", "What happened to a job, from the log, also after its end. At most 256 MiB are read.", historyReply{}, (*apiCall).jobHistory,
		param{name: "id", doc: "ID of the job", required: true},
		param{name: "from", doc: "next of the reply before; without it the search begins with the job's enqueue", integer: true})
	post("/api/v1/jobs/run", "Make jobs ready now.", "JOB RUN id", idsBody{}, actedJobs{}, (*apiCall).runJobs)
	post("/api/v1/jobs/delay", "Make jobs due later.", "JOB DELAY id ms", delayBody{}, actedJobs{}, (*apiCall).delayJobs)
	post("/api/v1/jobs/priority", "Change the priority of jobs.", "JOB PRIORITY id n", priorityBody{}, actedJobs{}, (*apiCall).prioritizeJobs)
	post("/api/v1/jobs/move", "Move jobs to another queue.", "JOB MOVE id queue", moveBody{}, actedJobs{}, (*apiCall).moveJobs)
	post("/api/v1/jobs/payload", "Change a job's payload.", "JOB PAYLOAD id bytes", payloadBody{}, actedJobs{}, (*apiCall).editJob)
	post("/api/v1/jobs/delete", "Remove jobs; a lease ends.", "JOB DELETE id…", idsBody{}, actedJobs{}, (*apiCall).deleteJobs)
	post("/api/v1/jobs/bulk", "Act on all jobs of a state, or of a reason, at most 10,000 at a time.", "", bulkBody{}, actedJobs{}, (*apiCall).bulk, queueKey)
	get("/api/v1/dead", "Dead jobs of a queue by the reason of their last failure.", reasonsReply{}, (*apiCall).deadReasons, queueKey)

	post("/api/v1/import", "Add a batch of jobs and tokens of another system; what was added before is left out. See pawl import.", "", importBody{}, importReply{}, (*apiCall).importBatch)

	get("/api/v1/crons", "A page of the recurring enqueues.", cronsReply{}, (*apiCall).listCrons, poolName,
		param{name: "match", doc: "part of the name or the queue, or a glob"}, pageFrom, pageCount)
	post("/api/v1/crons", "Make or replace a recurring enqueue.", "CRON SET name spec queue payload [options]", cronBody{}, acted{}, (*apiCall).setCron, queueKey)
	post("/api/v1/crons/delete", "Remove a recurring enqueue.", "CRON DELETE name", cronDeleteBody{}, acted{}, (*apiCall).deleteCron)

	get("/api/v1/tokens", "A page of the tokens of the HTTP API, with their limits.", tokensReply{}, (*apiCall).listTokens, poolName,
		param{name: "match", doc: "part of the namespace or the description, or a glob"}, pageFrom, pageCount)
	post("/api/v1/tokens", "Make a token.", "", tokenBody{}, tokenReply{}, (*apiCall).createToken)
	post("/api/v1/tokens/delete", "Remove a token and its limit.", "", tokenRefBody{}, acted{}, (*apiCall).deleteToken)
	post("/api/v1/limits", "Set the limit of a token.", "", limitBody{}, acted{}, (*apiCall).setLimit)
	post("/api/v1/limits/delete", "Remove the limit of a token.", "", tokenRefBody{}, acted{}, (*apiCall).deleteLimit)
	get("/api/v1/users", "A page of the users of the RESP port.", usersReply{}, (*apiCall).listUsers,
		param{name: "match", doc: "part of the name, or a glob"}, pageFrom, pageCount)
	post("/api/v1/users", "Make a user, change one, or give one a new password.", "ACL SETUSER name rule…", userBody{}, userReply{}, (*apiCall).setUser)
	post("/api/v1/users/delete", "Remove a user and close its connections.", "ACL DELUSER name", userNameBody{}, acted{}, (*apiCall).deleteUser)
	get("/api/v1/clients", "A page of the connections of the RESP port.", clientsReply{}, (*apiCall).listClients,
		param{name: "match", doc: "part of the address, name, user, library or last command"},
		pageFrom, pageCount)
	post("/api/v1/clients/kill", "Close a connection; a job that it has stays leased.", "CLIENT KILL ID id", killBody{}, acted{}, (*apiCall).killClient)
}
