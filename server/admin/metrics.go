package admin

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"pawl/engine"
	"pawl/server/lmstfy"
	"pawl/server/resp"
	"pawl/state"
)

// newRegistry is a registry of our own: nothing that a library registers by
// itself gets into /metrics.
func (s *Server) newRegistry() (*prometheus.Registry, error) {
	r := prometheus.NewRegistry()
	all := append([]prometheus.Collector{
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		s.options.Lmstfy.Collector(),
		(*engineCollector)(s),
	}, s.options.Collectors...)
	for _, c := range all {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// engineCollector reads the engine's published numbers: neither the disk nor the
// critical section is waited for.
type engineCollector Server

// numberMetric is one number of the engine.
type numberMetric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*engine.Numbers) float64
}

func number(name, help string, kind prometheus.ValueType, value func(*engine.Numbers) float64) numberMetric {
	return numberMetric{prometheus.NewDesc("pawl_"+name, help, nil, nil), kind, value}
}

type numbers = engine.Numbers

const (
	counter = prometheus.CounterValue
	gauge   = prometheus.GaugeValue
)

var engineMetrics = []numberMetric{
	number("queues", "Queues that exist.", gauge, func(n *numbers) float64 { return float64(n.QueueCount) }),
	number("groups", "Groups that have jobs.", gauge, func(n *numbers) float64 { return float64(n.GroupCount) }),
	number("waiting_fetchers", "Fetchers and consumers that wait for a job.", gauge, func(n *numbers) float64 { return float64(n.Waiting) }),
	number("jobs_enqueued_total", "Jobs enqueued since the start.", counter, func(n *numbers) float64 { return float64(n.Enqueued) }),
	number("jobs_delivered_total", "Leases given since the start.", counter, func(n *numbers) float64 { return float64(n.Delivered) }),
	number("jobs_acked_total", "Jobs finished since the start.", counter, func(n *numbers) float64 { return float64(n.Acked) }),
	number("jobs_nacked_total", "Jobs given back as failed since the start.", counter, func(n *numbers) float64 { return float64(n.Nacked) }),
	number("jobs_released_total", "Jobs given back untouched since the start.", counter, func(n *numbers) float64 { return float64(n.Released) }),
	number("leases_expired_total", "Leases that ran out since the start.", counter, func(n *numbers) float64 { return float64(n.Expired) }),
	number("jobs_dead_total", "Jobs that became dead letters since the start.", counter, func(n *numbers) float64 { return float64(n.Dead) }),
	number("jobs_deleted_total", "Jobs removed by command since the start.", counter, func(n *numbers) float64 { return float64(n.Deleted) }),
	number("jobs_lapsed_total", "Jobs whose TTL ended since the start.", counter, func(n *numbers) float64 { return float64(n.Lapsed) }),
	number("jobs_duplicate_total", "Enqueues that met a live job with their unique key.", counter, func(n *numbers) float64 { return float64(n.Duplicates) }),
	number("commands_refused_total", "Commands that the engine refused.", counter, func(n *numbers) float64 { return float64(n.Refused) }),
	number("log_applied_lsn", "Last group of the log that was applied.", gauge, func(n *numbers) float64 { return float64(n.AppliedLSN) }),
	number("log_durable_lsn", "Last group of the log that is on disk.", gauge, func(n *numbers) float64 { return float64(n.DurableLSN) }),
	number("log_groups_total", "Groups written to the log.", counter, func(n *numbers) float64 { return float64(n.Groups) }),
	number("log_records_total", "Records written to the log.", counter, func(n *numbers) float64 { return float64(n.Records) }),
	number("log_syncs_total", "Syncs of the log.", counter, func(n *numbers) float64 { return float64(n.Syncs) }),
	number("log_written_bytes_total", "Bytes written to the log.", counter, func(n *numbers) float64 { return float64(n.LogBytesWritten) }),
	number("log_zeroed_bytes_total", "Bytes of zeros written to generations of the log before their contents.", counter, func(n *numbers) float64 { return float64(n.ZeroBytesWritten) }),
	number("log_bytes", "Bytes of the log on disk.", gauge, func(n *numbers) float64 { return float64(n.LogBytes) }),
	number("log_live_bytes", "Bytes of the log that existing jobs need.", gauge, func(n *numbers) float64 { return float64(n.LiveBytes) }),
	number("log_generations", "Generations of the log on disk.", gauge, func(n *numbers) float64 { return float64(n.Generations) }),
	number("log_cleaned_bytes_total", "Bytes of jobs carried forward so that generations could go.", counter, func(n *numbers) float64 { return float64(n.CleanedBytes) }),
	number("log_oldest_unsynced_seconds", "How long the oldest change has been waiting for the disk.", gauge, func(n *numbers) float64 { return float64(n.OldestUnsyncedMs) / 1000 }),
	number("damaged_bodies_total", "Jobs whose bytes were rotten on disk.", counter, func(n *numbers) float64 { return float64(n.DamagedBodies) }),
	number("snapshot_lsn", "Last group that the newest snapshot holds.", gauge, func(n *numbers) float64 { return float64(n.SnapshotLSN) }),
	number("snapshot_timestamp_seconds", "When the newest snapshot was made, Unix time; 0 is never.", gauge, func(n *numbers) float64 { return float64(n.SnapshotAt) / 1000 }),
	number("snapshot_duration_seconds", "How long the newest snapshot took.", gauge, func(n *numbers) float64 { return float64(n.SnapshotMs) / 1000 }),
	number("snapshot_written_bytes_total", "Bytes written to snapshots.", counter, func(n *numbers) float64 { return float64(n.SnapshotBytesWritten) }),
	number("snapshot_failures_total", "Snapshots that failed.", counter, func(n *numbers) float64 { return float64(n.SnapshotFailures) }),
	number("snapshot_running", "1 while a snapshot is being written.", gauge, func(n *numbers) float64 { return bit(n.Snapshotting) }),
	number("storage_full", "1 while new jobs are refused for want of space.", gauge, func(n *numbers) float64 { return bit(n.Full) }),
	number("draining", "1 while new jobs are refused by DRAIN.", gauge, func(n *numbers) float64 { return bit(n.Draining) }),
	number("disk_free_bytes", "Free bytes where the data directory is.", gauge, func(n *numbers) float64 { return float64(n.DiskFree) }),
	number("state_memory_bytes", "Memory of the job index.", gauge, func(n *numbers) float64 { return float64(n.MemoryBytes) }),
	number("clock_steps_total", "Steps of the wall clock that were noticed.", counter, func(n *numbers) float64 { return float64(n.ClockSteps) }),
	number("recovery_cut_bytes", "Bytes of a torn tail that the last start left out.", gauge, func(n *numbers) float64 { return float64(n.CutBytes) }),
	number("recovery_duration_seconds", "How long the last start took to recover.", gauge, func(n *numbers) float64 { return float64(n.RecoveredMs) / 1000 }),
}

func bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

var (
	upDesc       = prometheus.NewDesc("pawl_ready", "1 when jobs are served; see /readyz for the reasons when not.", nil, nil)
	buildDesc    = prometheus.NewDesc("pawl_build_info", "Always 1; the version is in the label.", []string{"version", "commit"}, nil)
	replayDone   = prometheus.NewDesc("pawl_replay_done_bytes", "Bytes of snapshot and log that the start has read.", nil, nil)
	replayTotal  = prometheus.NewDesc("pawl_replay_total_bytes", "Bytes of snapshot and log that the start has to read.", nil, nil)
	jobsDesc     = prometheus.NewDesc("pawl_jobs", "Jobs by state.", []string{"state"}, nil)
	respClients  = prometheus.NewDesc("pawl_resp_connections", "RESP connections that are open.", nil, nil)
	respBlocked  = prometheus.NewDesc("pawl_resp_blocked_connections", "RESP connections that wait for a job.", nil, nil)
	respBuffers  = prometheus.NewDesc("pawl_resp_buffer_bytes", "Buffers of all RESP connections.", nil, nil)
	respAccepted = prometheus.NewDesc("pawl_resp_accepted_total", "RESP connections that were accepted.", nil, nil)
	respRefused  = prometheus.NewDesc("pawl_resp_refused_total", "RESP connections over the limit.", nil, nil)
	respCommands = prometheus.NewDesc("pawl_resp_commands_total", "RESP commands done, by name.", []string{"command"}, nil)
	respErrors   = prometheus.NewDesc("pawl_resp_errors_total", "RESP error replies.", nil, nil)
	respIn       = prometheus.NewDesc("pawl_resp_received_bytes_total", "Bytes received over RESP.", nil, nil)
	respOut      = prometheus.NewDesc("pawl_resp_sent_bytes_total", "Bytes sent over RESP.", nil, nil)
	respAuth     = prometheus.NewDesc("pawl_resp_auth_failures_total", "Wrong users or passwords over RESP.", nil, nil)
	respDenied   = prometheus.NewDesc("pawl_resp_denied_total", "RESP commands that a user had no right to.", nil, nil)
	loginsWrong  = prometheus.NewDesc("pawl_admin_auth_failures_total", "Logins to the admin listener with an unknown user or a wrong password.", nil, nil)
	loginsUnseen = prometheus.NewDesc("pawl_admin_auth_locked_total", "Logins refused without a look, because their address had been wrong too often.", nil, nil)
	apiClients   = prometheus.NewDesc("pawl_http_connections", "Connections of the HTTP API that are open.", nil, nil)
	apiAccepted  = prometheus.NewDesc("pawl_http_accepted_total", "Connections of the HTTP API that were accepted.", nil, nil)
	apiRefused   = prometheus.NewDesc("pawl_http_refused_total", "Connections of the HTTP API over the limit.", nil, nil)
	apiBuffers   = prometheus.NewDesc("pawl_http_buffer_bytes", "Requests and replies of all connections of the HTTP API.", nil, nil)
	apiNoBuffers = prometheus.NewDesc("pawl_http_buffers_refused_total", "Requests of the HTTP API that were refused or cut off because the buffers were full.", nil, nil)
	adminClients = prometheus.NewDesc("pawl_admin_connections", "Connections of the admin listener that are open.", nil, nil)
	adminRefused = prometheus.NewDesc("pawl_admin_refused_total", "Connections of the admin listener over the limit.", nil, nil)
	respClosed   = prometheus.NewDesc("pawl_resp_closed_total", "RESP connections that the server closed, by reason.", []string{"reason"}, nil)
)

// histogramMetrics are the engine's distributions.
var histogramMetrics = []struct {
	desc *prometheus.Desc
	of   func(*engine.Histograms) *engine.Histogram
}{
	{histogramDesc("log_sync_seconds", "One write and sync of a group."), func(h *engine.Histograms) *engine.Histogram { return &h.SyncSeconds }},
	{histogramDesc("log_group_records", "Records in a group."), func(h *engine.Histograms) *engine.Histogram { return &h.GroupRecords }},
	{histogramDesc("log_group_bytes", "Bytes of a group."), func(h *engine.Histograms) *engine.Histogram { return &h.GroupBytes }},
	{histogramDesc("job_wait_seconds", "From a job's becoming ready to its first delivery."), func(h *engine.Histograms) *engine.Histogram { return &h.WaitSeconds }},
	{histogramDesc("job_run_seconds", "From a delivery to its acknowledgement."), func(h *engine.Histograms) *engine.Histogram { return &h.RunSeconds }},
	{histogramDesc("engine_turn_seconds", "One stay in the critical section."), func(h *engine.Histograms) *engine.Histogram { return &h.TurnSeconds }},
	{histogramDesc("engine_turn_cpu_seconds", "Processor time of one stay in the critical section; only with --pprof."), func(h *engine.Histograms) *engine.Histogram { return &h.TurnCPUSeconds }},
	{histogramDesc("engine_late_seconds", "From the time of a delay, time to live or lease until it was ended."), func(h *engine.Histograms) *engine.Histogram { return &h.LateSeconds }},
	{histogramDesc("enqueue_less_own_sync_seconds", "From an enqueue's arrival to its reply, without the write and sync of its own group."), func(h *engine.Histograms) *engine.Histogram { return &h.LessOwnSync }},
	{histogramDesc("enqueue_less_all_syncs_seconds", "From an enqueue's arrival to its reply, without all writes and syncs meanwhile."), func(h *engine.Histograms) *engine.Histogram { return &h.LessAllSyncs }},
}

func histogramDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("pawl_"+name, help, nil, nil)
}

// Describe implements prometheus.Collector as an unchecked one: what there is
// depends on how far the start is.
func (c *engineCollector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *engineCollector) Collect(ch chan<- prometheus.Metric) {
	s := (*Server)(c)
	send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	send(buildDesc, gauge, 1, lmstfy.Label(s.options.Version), lmstfy.Label(s.options.Commit))
	send(upDesc, gauge, bit(len(s.unready()) == 0))
	logins := s.options.Lmstfy.Accounts().Numbers()
	send(loginsWrong, counter, float64(logins.Wrong))
	send(loginsUnseen, counter, float64(logins.Unseen))
	api := s.options.Lmstfy.Connections()
	send(apiClients, gauge, float64(api.Open))
	send(apiAccepted, counter, float64(api.Accepted))
	send(apiRefused, counter, float64(api.Refused))
	bytes, refused := s.options.Lmstfy.Buffers()
	send(apiBuffers, gauge, float64(bytes))
	send(apiNoBuffers, counter, float64(refused))
	own := s.crowd.Numbers()
	send(adminClients, gauge, float64(own.Open))
	send(adminRefused, counter, float64(own.Refused))
	if s.options.Resp != nil {
		collectResp(send, s.options.Resp.Numbers())
	}
	e := s.currentEngine()
	if e == nil {
		if s.options.Loading != nil {
			done, total := s.options.Loading()
			send(replayDone, gauge, float64(done))
			send(replayTotal, gauge, float64(total))
		}
		return
	}
	n := e.Numbers()
	for _, m := range engineMetrics {
		send(m.desc, m.kind, m.value(&n))
	}
	for p := state.Ready; p <= state.Dead; p++ {
		send(jobsDesc, gauge, float64(n.Jobs[p]), p.String())
	}
	h := e.Histograms()
	for _, m := range histogramMetrics {
		of := m.of(&h)
		buckets := make(map[float64]uint64, len(of.Upper))
		for i, upper := range of.Upper {
			buckets[upper] = of.Below[i]
		}
		ch <- prometheus.MustNewConstHistogram(m.desc, of.Count, of.Sum, buckets)
	}
}

func collectResp(send func(*prometheus.Desc, prometheus.ValueType, float64, ...string), n resp.Numbers) {
	send(respClients, gauge, float64(n.Connected))
	send(respBlocked, gauge, float64(n.Blocked))
	send(respBuffers, gauge, float64(n.BufferBytes))
	send(respAccepted, counter, float64(n.Accepted))
	send(respRefused, counter, float64(n.Refused))
	send(respErrors, counter, float64(n.Errors))
	send(respIn, counter, float64(n.BytesIn))
	send(respOut, counter, float64(n.BytesOut))
	send(respAuth, counter, float64(n.AuthFailures))
	send(respDenied, counter, float64(n.Denied))
	for name, count := range n.PerCommand {
		send(respCommands, counter, float64(count), lmstfy.Label(name))
	}
	for reason, count := range n.Closed {
		send(respClosed, counter, float64(count), lmstfy.Label(reason))
	}
}
