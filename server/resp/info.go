package resp

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"pawl/engine"
	"pawl/state"
)

// redisVersion is what clients are told that look for features of a Redis: the
// protocol spoken here is that of 7.2, without what a queue has no use for.
const redisVersion = "7.2.0"

// infoSections in their order, with what writes them.
var infoSections = []struct {
	name  string
	write func(b *strings.Builder, s *Server, n *engine.Numbers, loading bool)
}{
	{"Server", infoServer},
	{"Clients", infoClients},
	{"Memory", infoMemory},
	{"Persistence", infoPersistence},
	{"Stats", infoStats},
	{"Replication", infoReplication},
	{"CPU", infoCPU},
	{"Commandstats", infoCommandstats},
	{"Pawl", infoPawl},
	{"Keyspace", infoKeyspace},
}

// INFO [section…]. It answers whatever the disk does.
func cmdInfo(c *conn, args [][]byte) {
	wanted := func(name string) bool { return name != "Commandstats" }
	if len(args) > 1 {
		wanted = func(name string) bool {
			for _, arg := range args[1:] {
				switch section := lower(string(arg)); section {
				case "all", "everything":
					return true
				case "default":
					if name != "Commandstats" {
						return true
					}
				default:
					if section == lower(name) {
						return true
					}
				}
			}
			return false
		}
	}
	e := c.engine()
	var n engine.Numbers
	if e != nil {
		n = e.Numbers()
	}
	var b strings.Builder
	for _, section := range infoSections {
		if !wanted(section.name) {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString("# " + section.name + "\r\n")
		section.write(&b, c.srv, &n, e == nil)
	}
	c.b.out.text(b.String())
}

// line writes name:value.
func line(b *strings.Builder, name string, value any) {
	fmt.Fprintf(b, "%s:%v\r\n", name, value)
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func infoServer(b *strings.Builder, s *Server, _ *engine.Numbers, _ bool) {
	up := time.Since(s.started)
	line(b, "redis_version", redisVersion)
	line(b, "redis_mode", "standalone")
	line(b, "pawl_version", s.opt.Version)
	line(b, "os", runtime.GOOS+" "+runtime.GOARCH)
	line(b, "arch_bits", 64)
	line(b, "go_version", runtime.Version())
	line(b, "process_id", os.Getpid())
	line(b, "run_id", s.runID)
	s.mu.Lock()
	loop := "portable"
	if len(s.pollers) > 0 {
		loop = "poll"
	}
	port := 0
	for l := range s.listeners {
		if p := portOf(l.Addr()); p > 0 && (port == 0 || p < port) {
			port = p
		}
	}
	s.mu.Unlock()
	line(b, "loop", loop)
	line(b, "tcp_port", port)
	line(b, "server_time_usec", time.Now().UnixMicro())
	line(b, "uptime_in_seconds", int64(up.Seconds()))
	line(b, "uptime_in_days", int64(up.Hours()/24))
}

func infoClients(b *strings.Builder, s *Server, _ *engine.Numbers, _ bool) {
	n := s.Numbers()
	line(b, "connected_clients", n.Connected)
	line(b, "maxclients", s.clientLimit.Load())
	line(b, "blocked_clients", n.Blocked)
	line(b, "monitor_clients", n.Monitors)
	line(b, "polled_clients", n.Polled)
}

func infoMemory(b *strings.Builder, s *Server, n *engine.Numbers, _ bool) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	line(b, "used_memory", m.HeapAlloc)
	line(b, "used_memory_rss", m.Sys-m.HeapReleased)
	line(b, "used_memory_state", n.MemoryBytes)
	line(b, "used_memory_client_buffers", s.ceiling.used.Load())
	line(b, "maxmemory_client_buffers", s.ceiling.limit.Load())
}

func infoPersistence(b *strings.Builder, s *Server, n *engine.Numbers, loading bool) {
	line(b, "loading", bit(loading))
	if loading && s.opt.Progress != nil {
		done, total := s.opt.Progress()
		line(b, "loading_start_time", s.started.Unix())
		line(b, "loading_total_bytes", total)
		line(b, "loading_loaded_bytes", done)
		if total > 0 {
			line(b, "loading_loaded_perc", fmt.Sprintf("%.2f", 100*float64(done)/float64(total)))
		}
	}
	line(b, "sync_mode", s.opt.SyncMode)
	line(b, "ephemeral", bit(s.opt.Ephemeral))
	line(b, "aof_enabled", bit(!s.opt.Ephemeral))
	line(b, "aof_last_write_status", okOr(n.Full, "full"))
	line(b, "oldest_unsynced_ms", n.OldestUnsyncedMs)
	line(b, "applied_lsn", n.AppliedLSN)
	line(b, "durable_lsn", n.DurableLSN)
	line(b, "log_bytes", n.LogBytes)
	line(b, "log_live_bytes", n.LiveBytes)
	line(b, "log_generations", n.Generations)
	line(b, "disk_free_bytes", n.DiskFree)
	line(b, "disk_full", bit(n.Full))
	line(b, "rdb_bgsave_in_progress", bit(n.Snapshotting))
	line(b, "rdb_last_save_time", int64(n.SnapshotAt)/1000)
	line(b, "rdb_last_bgsave_status", "ok")
	line(b, "snapshot_lsn", n.SnapshotLSN)
	line(b, "snapshot_last_ms", n.SnapshotMs)
	line(b, "snapshot_failures", n.SnapshotFailures)
	line(b, "recovered_ms", n.RecoveredMs)
	line(b, "recovery_cut_bytes", n.CutBytes)
}

func okOr(bad bool, text string) string {
	if bad {
		return text
	}
	return "ok"
}

func infoStats(b *strings.Builder, s *Server, _ *engine.Numbers, _ bool) {
	n := s.Numbers()
	line(b, "total_connections_received", n.Accepted)
	line(b, "total_commands_processed", n.Commands)
	line(b, "total_net_input_bytes", n.BytesIn)
	line(b, "total_net_output_bytes", n.BytesOut)
	line(b, "rejected_connections", n.Refused)
	line(b, "total_error_replies", n.Errors)
	line(b, "acl_access_denied_auth", n.AuthFailures)
	line(b, "acl_access_denied_cmd", n.Denied)
	for _, cause := range closeCauses {
		line(b, "closed_"+string(cause), n.Closed[string(cause)])
	}
}

func infoReplication(b *strings.Builder, s *Server, _ *engine.Numbers, _ bool) {
	line(b, "role", "master")
	line(b, "connected_slaves", 0)
	line(b, "master_replid", s.runID)
}

func infoCPU(b *strings.Builder, _ *Server, _ *engine.Numbers, _ bool) {
	line(b, "cpus", runtime.NumCPU())
	line(b, "goroutines", runtime.NumGoroutine())
}

func infoCommandstats(b *strings.Builder, s *Server, _ *engine.Numbers, _ bool) {
	n := s.Numbers()
	names := make([]string, 0, len(n.PerCommand))
	for name := range n.PerCommand {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		line(b, "cmdstat_"+name, fmt.Sprintf("calls=%d", n.PerCommand[name]))
	}
}

func infoPawl(b *strings.Builder, _ *Server, n *engine.Numbers, _ bool) {
	line(b, "queues", n.QueueCount)
	line(b, "groups", n.GroupCount)
	for p := state.Ready; p <= state.Dead; p++ {
		line(b, "jobs_"+p.String(), n.Jobs[p])
	}
	line(b, "waiting_fetchers", n.Waiting)
	line(b, "draining", bit(n.Draining))
	line(b, "enqueued_total", n.Enqueued)
	line(b, "delivered_total", n.Delivered)
	line(b, "acked_total", n.Acked)
	line(b, "nacked_total", n.Nacked)
	line(b, "released_total", n.Released)
	line(b, "expired_leases_total", n.Expired)
	line(b, "dead_total", n.Dead)
	line(b, "deleted_total", n.Deleted)
	line(b, "ttl_ended_total", n.Lapsed)
	line(b, "duplicates_total", n.Duplicates)
	line(b, "refused_total", n.Refused)
	line(b, "groups_committed_total", n.Groups)
	line(b, "records_total", n.Records)
	line(b, "syncs_total", n.Syncs)
	line(b, "damaged_bodies_total", n.DamagedBodies)
	line(b, "clock_steps_total", n.ClockSteps)
}

func infoKeyspace(b *strings.Builder, _ *Server, n *engine.Numbers, _ bool) {
	if jobs := allJobs(n); jobs > 0 {
		line(b, "db0", fmt.Sprintf("keys=%d,expires=0,avg_ttl=0", jobs))
	}
}

func allJobs(n *engine.Numbers) (jobs int64) {
	for p := state.Ready; p <= state.Dead; p++ {
		jobs += n.Jobs[p]
	}
	return jobs
}

// DBSIZE: all jobs of all queues and pools.
func cmdDBSize(c *conn, _ [][]byte) {
	n := c.engine().Numbers()
	c.b.out.integer(allJobs(&n))
}
