package admin

import (
	"time"

	"pawl/engine"
	"pawl/state"
)

// overviewReply is what the first page shows.
type overviewReply struct {
	At            int64    `json:"at" doc:"Unix ms"`
	Version       string   `json:"version"`
	UptimeMs      int64    `json:"uptime_ms"`
	Ready         bool     `json:"ready" doc:"jobs are served"`
	Reasons       []Reason `json:"reasons" doc:"why not"`
	Jobs          jobCount `json:"jobs"`
	Queues        int64    `json:"queues"`
	Groups        int64    `json:"groups"`
	Waiting       int64    `json:"waiting" doc:"fetchers that wait"`
	Connections   int64    `json:"connections" doc:"over RESP; -1 is unknown"`
	OldestReadyMs int64    `json:"oldest_ready_ms" doc:"of all queues"`
	Paused        int64    `json:"paused" doc:"queues"`
	Draining      bool     `json:"draining"`
	Totals        since    `json:"totals" doc:"since the start"`
	Wait          latency  `json:"wait" doc:"from ready to the first delivery, in the last minute"`
	Run           latency  `json:"run" doc:"from a delivery to its acknowledgement, in the last minute"`
	Sync          latency  `json:"sync" doc:"one write and sync of a group, in the last minute"`
	Log           logJSON  `json:"log"`
	History       []sample `json:"history" doc:"oldest first, every five seconds"`
}

type jobCount struct {
	Ready   int64 `json:"ready"`
	Delayed int64 `json:"delayed"`
	Leased  int64 `json:"leased"`
	Dead    int64 `json:"dead"`
}

type since struct {
	Enqueued  uint64 `json:"enqueued"`
	Delivered uint64 `json:"delivered"`
	Acked     uint64 `json:"acked"`
	Nacked    uint64 `json:"nacked"`
	Expired   uint64 `json:"expired"`
	Dead      uint64 `json:"dead"`
	Lapsed    uint64 `json:"lapsed"`
	Refused   uint64 `json:"refused"`
}

type logJSON struct {
	AppliedLSN       uint64 `json:"applied_lsn"`
	DurableLSN       uint64 `json:"durable_lsn"`
	OldestUnsyncedMs int64  `json:"oldest_unsynced_ms"`
	Bytes            int64  `json:"bytes"`
	LiveBytes        int64  `json:"live_bytes"`
	Generations      int64  `json:"generations"`
	DiskFree         int64  `json:"disk_free"`
	Full             bool   `json:"full"`
	MemoryBytes      int64  `json:"memory_bytes" doc:"of the job index"`
	SnapshotAt       int64  `json:"snapshot_at" doc:"Unix ms; 0 is none"`
	SnapshotMs       int64  `json:"snapshot_ms"`
	Snapshotting     bool   `json:"snapshotting"`
	SnapshotFailures uint64 `json:"snapshot_failures"`
	DamagedBodies    uint64 `json:"damaged_bodies"`
	RecoveredMs      int64  `json:"recovered_ms" doc:"how long the last start took"`
	CutBytes         int64  `json:"cut_bytes" doc:"torn tail that it left out"`
}

// overview reads published numbers only.
func (c *apiCall) overview() (any, error) {
	n, h, census := c.engine.Numbers(), c.engine.Histograms(), c.engine.Census()
	now := time.Now()
	reply := overviewReply{
		At: now.UnixMilli(), Version: c.s.options.Version, UptimeMs: now.Sub(c.s.started).Milliseconds(),
		Reasons: c.s.unready(),
		Jobs:    jobCount{n.Jobs[state.Ready], n.Jobs[state.Delayed], n.Jobs[state.Leased], n.Jobs[state.Dead]},
		Queues:  n.QueueCount, Groups: n.GroupCount, Waiting: n.Waiting, Connections: -1, Draining: n.Draining,
		Totals: since{n.Enqueued, n.Delivered, n.Acked, n.Nacked, n.Expired, n.Dead, n.Lapsed, n.Refused},
		Log: logJSON{
			AppliedLSN: uint64(n.AppliedLSN), DurableLSN: uint64(n.DurableLSN), OldestUnsyncedMs: n.OldestUnsyncedMs,
			Bytes: n.LogBytes, LiveBytes: n.LiveBytes, Generations: n.Generations, DiskFree: n.DiskFree, Full: n.Full,
			MemoryBytes: n.MemoryBytes, SnapshotAt: int64(n.SnapshotAt), SnapshotMs: n.SnapshotMs,
			Snapshotting: n.Snapshotting, SnapshotFailures: n.SnapshotFailures, DamagedBodies: n.DamagedBodies,
			RecoveredMs: n.RecoveredMs, CutBytes: n.CutBytes,
		},
		History: c.s.history.all(),
	}
	reply.Ready = len(reply.Reasons) == 0
	reply.Wait, reply.Run, reply.Sync = c.s.history.latencies(h)
	if c.s.options.Resp != nil {
		reply.Connections = c.s.options.Resp.Numbers().Connected
	}
	for i := range census.Queues {
		reply.OldestReadyMs = max(reply.OldestReadyMs, int64(census.Queues[i].OldestReadyMs))
		if census.Queues[i].Paused {
			reply.Paused++
		}
	}
	return reply, nil
}

func (c *apiCall) snapshot() (any, error) {
	var b dryBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	return c.act(b.DryRun, "SNAPSHOT", 1, func() (int64, error) { return 1, c.engine.Snapshot(c.r.Context()) })
}

type drainBody struct {
	On     bool `json:"on"`
	DryRun bool `json:"dry_run"`
}

func (c *apiCall) drain() (any, error) {
	var b drainBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	word := "off"
	if b.On {
		word = "on"
	}
	return c.act(b.DryRun, commandLine("DRAIN", word), 1, func() (int64, error) {
		return 1, c.do(&engine.Drain{On: b.On})
	})
}
