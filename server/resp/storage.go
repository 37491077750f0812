package resp

import (
	"bytes"
	"path/filepath"
	"regexp"

	"pawl/engine"
	"pawl/state"
)

// SNAPSHOT, SAVE: writes one now and answers when it is in place.
func cmdSave(c *conn, _ [][]byte) {
	if err := c.engine().Snapshot(c.srv.life); err != nil {
		c.storageError("snapshot", err)
		return
	}
	c.b.out.ok()
}

// storageError answers for a snapshot or backup that failed, which stops
// nothing.
func (c *conn) storageError(what string, err error) {
	c.srv.log.Error("a "+what+" asked for by a client failed", "client", c.id, "error", err)
	if line, known := replyError(err); known {
		c.failNow(line)
		return
	}
	c.failNow("ERR the " + what + " failed: " + err.Error())
}

// BGSAVE: begins one and answers at once.
func cmdBGSave(c *conn, _ [][]byte) {
	s, e := c.srv, c.engine()
	if !s.saving.CompareAndSwap(false, true) {
		c.failNow("ERR Background save already in progress")
		return
	}
	s.running.Go(func() {
		defer s.saving.Store(false)
		if err := e.Snapshot(s.life); err != nil {
			s.log.Error("a snapshot asked for by a client failed", "error", err)
		}
	})
	c.b.out.simple("Background saving started")
}

// LASTSAVE: Unix seconds of the newest snapshot, 0 for none.
func cmdLastSave(c *conn, _ [][]byte) {
	c.b.out.integer(int64(c.engine().Numbers().SnapshotAt) / 1000)
}

// backupName is one plain file name: nothing a client sends becomes a path.
var backupName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$`)

// BACKUP name.
func cmdBackup(c *conn, args [][]byte) {
	switch {
	case c.srv.opt.BackupDir == "":
		c.failNow("ERR backups are off: the daemon was started without --backup-dir")
	case bytes.HasSuffix(args[1], []byte(engine.Copying)):
		c.failNow("ERR a backup's name does not end in " + engine.Copying + ": so are those called that are being made")
	case !backupName.Match(args[1]):
		c.failNow("ERR a backup's name is 1 to 64 letters, digits, dots, dashes and underscores, and begins with none of the first two marks")
	default:
		if err := c.engine().Backup(c.srv.life, filepath.Join(c.srv.opt.BackupDir, string(args[1]))); err != nil {
			c.storageError("backup", err)
			return
		}
		c.b.out.ok()
	}
}

// DRAIN on|off.
func cmdDrain(c *conn, args [][]byte) {
	on := equalFold(args[1], "ON")
	if !on && !equalFold(args[1], "OFF") {
		c.failNow(errSyntax)
		return
	}
	if c.do(&engine.Drain{On: on}) {
		c.srv.log.Info("draining was switched", "on", on, "by", c.user.Name)
		c.b.out.ok()
	}
}

// MEMORY USAGE queue: an estimate of what the jobs of a queue hold in memory.
// Payloads are on disk and count nothing.
func cmdMemoryUsage(c *conn, args [][]byte) {
	if len(args) > 3 && (len(args) != 5 || !equalFold(args[3], "SAMPLES")) {
		c.failNow(errSyntax)
		return
	}
	key, refusal := c.queueKey(args[2])
	if refusal != "" {
		c.failNow(refusal)
		return
	}
	info := engine.QueueInfo{Queue: key}
	if !c.do(&info) {
		return
	}
	if !info.Found {
		c.b.out.null()
		return
	}
	const perQueue, perJob = 512, 64 + 48 // an entry of the slab, one of the deadline tree
	i := &info.Info
	c.b.out.integer(perQueue + perJob*(i.Ready+i.Delayed+i.Leased+i.Dead))
}

// MEMORY DOCTOR.
func cmdMemoryDoctor(c *conn, _ [][]byte) {
	n := c.engine().Numbers()
	c.b.out.text("The state of " + decimal(allJobs(&n)) + " jobs holds " + decimal(n.MemoryBytes) + " bytes, and the buffers of clients " +
		decimal(c.srv.ceiling.used.Load()) + ". Payloads are on disk.")
}

// millis is a time that may be none.
func (w *writer) millis(name string, at state.Millis) {
	if at != 0 {
		w.pair(name, int64(at))
		return
	}
	w.bulkString(name)
	w.null()
}
