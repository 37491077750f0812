package resp

import "pawl/acl"

// commands are all rows of the table, a container before its subcommands, and
// byName finds those that are no subcommands. Both are set once, by init: the
// table names functions that look into it.
var (
	commands []*command
	byName   = make(map[string]*command)
)

func init() {
	commands = flatten(table())
	for _, cmd := range commands {
		if cmd.parent == nil {
			byName[cmd.name] = cmd
		}
	}
}

// table is what dispatch, arity, rights, COMMAND and docs/commands.md follow.
// In the syntax, UPPER case is sent as it stands and lower case is a value; [ ]
// is optional, | a choice, … repeats.
func table() []*command {
	return []*command{
		// Producers.
		{name: "ENQUEUE", syntax: "queue payload [DELAY ms | AT unix-ms] [TTL ms] [PRIORITY n] [TRIES n] [BACKOFF ms [MAX ms]] [UNIQUE key [FOR ms]] [GROUP key] [ATTR name value]…",
			arity: -3, flags: flagWrite | flagFast | flagPipeline | flagMulti, class: acl.Produce, group: "producers",
			summary: "Adds a job to a queue.", since: "1.0.0", run: cmdEnqueue},

		// Workers.
		{name: "FETCH", syntax: "queue timeout_ms [COUNT n] [WAIT ms] [META] [OR queue…]",
			arity: -3, flags: flagWrite | flagFast | flagPipeline | flagBlocking, class: acl.Work, group: "workers",
			summary: "Takes a lease on the next job of a queue; waits for one if asked to.", since: "1.0.0", run: cmdFetch},
		{name: "ACK", syntax: "lease [lease…]",
			arity: -2, flags: flagWrite | flagFast | flagPipeline | flagMulti, class: acl.Work, group: "workers",
			summary: "Finishes the jobs of leases.", since: "1.0.0", run: cmdAck},
		{name: "NACK", syntax: "lease [DELAY ms] [REASON text]",
			arity: -2, most: 6, flags: flagWrite | flagFast | flagPipeline | flagMulti, class: acl.Work, group: "workers",
			summary: "Gives a job back as failed.", since: "1.0.0", run: cmdNack},
		{name: "RELEASE", syntax: "lease",
			arity: 2, flags: flagWrite | flagFast | flagPipeline | flagMulti, class: acl.Work, group: "workers",
			summary: "Gives a job back untouched, at the head of its queue.", since: "1.0.0", run: cmdRelease},
		{name: "BURY", syntax: "lease [REASON text]",
			arity: -2, most: 4, flags: flagWrite | flagFast | flagPipeline | flagMulti, class: acl.Work, group: "workers",
			summary: "Sends a job straight to the dead letters.", since: "1.0.0", run: cmdBury},
		{name: "EXTEND", syntax: "lease timeout_ms",
			arity: 3, flags: flagWrite | flagFast | flagPipeline | flagMulti, class: acl.Work, group: "workers",
			summary: "Moves the deadline of a lease, counted from now.", since: "1.0.0", run: cmdExtend},
		{name: "STATS", syntax: "queue",
			arity: 2, flags: flagRead | flagFast | flagPipeline, class: acl.Work, group: "workers",
			summary: "Counts the jobs of a queue, as Moxy does.", since: "1.0.0", run: cmdStats},

		// Transactions.
		{name: "MULTI", arity: 1, flags: flagFast | flagNoMulti, group: "transactions",
			summary: "Begins a transaction: commands are queued until EXEC.", since: "1.0.0", run: cmdMulti},
		{name: "EXEC", arity: 1, flags: flagWrite | flagNoMulti, group: "transactions",
			summary: "Does all queued commands in one log entry, or none.", since: "1.0.0", run: cmdExec},
		{name: "DISCARD", arity: 1, flags: flagFast | flagNoMulti, group: "transactions",
			summary: "Forgets the queued commands.", since: "1.0.0", run: cmdDiscard},

		// Operators.
		{name: "JOB", arity: -2, class: acl.Operate, group: "operators", since: "1.0.0",
			summary: "Looks at and changes single jobs.", sub: []*command{
				{name: "GET", syntax: "id", arity: 3, flags: flagRead, summary: "Tells everything known of a job.", run: cmdJobGet},
				{name: "HISTORY", syntax: "id [FROM lsn]", arity: -3, most: 5, flags: flagRead, summary: "Tells what happened to a job, from the log.", run: cmdJobHistory},
				{name: "DELETE", syntax: "id…", arity: -3, flags: flagWrite | flagMulti, summary: "Deletes jobs, leased ones too.", run: cmdJobDelete},
				{name: "RUN", syntax: "id", arity: 3, flags: flagWrite, summary: "Makes a waiting job ready now.", run: cmdJobRun},
				{name: "DELAY", syntax: "id ms", arity: 4, flags: flagWrite, summary: "Makes a waiting job due in some time.", run: cmdJobDelay},
				{name: "PRIORITY", syntax: "id n", arity: 4, flags: flagWrite, summary: "Changes the priority of a waiting job.", run: cmdJobPriority},
				{name: "PAYLOAD", syntax: "id bytes", arity: 4, flags: flagWrite, summary: "Replaces the payload of a waiting job.", run: cmdJobPayload},
				{name: "MOVE", syntax: "id queue", arity: 4, flags: flagWrite, summary: "Moves a waiting job to another queue.", run: cmdJobMove},
			}},
		{name: "QUEUE", arity: -2, class: acl.Operate, group: "operators", since: "1.0.0",
			summary: "Looks at and changes queues.", sub: []*command{
				{name: "LIST", syntax: "[MATCH glob]", arity: -2, most: 4, flags: flagRead, summary: "Lists the names of queues.", run: cmdQueueList},
				{name: "INFO", syntax: "queue", arity: 3, flags: flagRead, summary: "Tells everything known of a queue.", run: onQueue(cmdQueueInfo)},
				{name: "PEEK", syntax: "queue [STATE ready|delayed|leased|dead] [COUNT n] [AFTER cursor|id]", arity: -3, most: 9, flags: flagRead,
					summary: "Shows one page of jobs in delivery order.", run: onQueue(cmdQueuePeek)},
				{name: "PAUSE", syntax: "queue [FOR ms]", arity: -3, most: 5, flags: flagWrite, summary: "Stops deliveries of a queue.", run: onQueue(cmdQueuePause)},
				{name: "RESUME", syntax: "queue", arity: 3, flags: flagWrite, summary: "Ends a pause.", run: onQueue(cmdQueueResume)},
				{name: "PURGE", syntax: "queue [STATE ready|delayed|dead…]", arity: -3, flags: flagWrite, summary: "Removes jobs, ready and delayed ones by default.", run: onQueue(cmdQueuePurge)},
				{name: "REDRIVE", syntax: "queue [COUNT n] [TO queue] [TRIES n] [TTL ms]", arity: -3, most: 11, flags: flagWrite,
					summary: "Moves dead jobs to ready, oldest first.", run: onQueue(cmdQueueRedrive)},
				{name: "SET", syntax: "queue [TRIES n] [TTL ms] [BACKOFF ms [MAX ms]] [MAXLEN n] [MAXBYTES n] [MAXLEASED n] [RATE rate] [DEADMAX n] [DEADFOR ms]",
					arity: -5, flags: flagWrite, summary: "Changes settings of a queue.", run: onQueue(cmdQueueSet)},
				{name: "RESET", syntax: "queue", arity: 3, flags: flagWrite, summary: "Gives a queue the default settings.", run: onQueue(cmdQueueReset)},
				{name: "DELETE", syntax: "queue", arity: 3, flags: flagWrite, summary: "Deletes a queue of which nothing is leased.", run: onQueue(cmdQueueDelete)},
			}},
		{name: "CRON", arity: -2, class: acl.Operate, group: "operators", since: "1.0.0",
			summary: "Manages recurring enqueues.", sub: []*command{
				{name: "SET", syntax: "name spec queue payload [TZ zone] [CATCHUP one|none|all] [DELAY ms] [TTL ms] [PRIORITY n] [TRIES n] [BACKOFF ms [MAX ms]] [UNIQUE key [FOR ms]] [GROUP key] [ATTR name value]…",
					arity: -6, flags: flagWrite, summary: "Makes or replaces a recurring enqueue.", run: cmdCronSet},
				{name: "LIST", arity: 2, flags: flagRead, summary: "Lists recurring enqueues and their next slots.", run: cmdCronList},
				{name: "DELETE", syntax: "name", arity: 3, flags: flagWrite, summary: "Removes a recurring enqueue.", run: cmdCronDelete},
			}},
		{name: "SNAPSHOT", arity: 1, flags: flagWrite, class: acl.Admin, group: "operators",
			summary: "Writes a snapshot and waits for it.", since: "1.0.0", run: cmdSave},
		{name: "SAVE", arity: 1, flags: flagWrite, class: acl.Admin, group: "operators",
			summary: "Writes a snapshot and waits for it.", since: "1.0.0", run: cmdSave},
		{name: "BGSAVE", syntax: "[SCHEDULE]", arity: -1, most: 2, flags: flagWrite, class: acl.Admin, group: "operators",
			summary: "Begins to write a snapshot.", since: "1.0.0", run: cmdBGSave},
		{name: "LASTSAVE", arity: 1, flags: flagRead | flagFast, class: acl.Admin, group: "operators",
			summary: "Tells when the newest snapshot was written.", since: "1.0.0", run: cmdLastSave},
		{name: "BACKUP", syntax: "name", arity: 2, flags: flagWrite, class: acl.Admin, group: "operators",
			summary: "Writes a consistent copy of the data directory.", since: "1.0.0", run: cmdBackup},
		{name: "DRAIN", syntax: "on|off", arity: 2, flags: flagWrite, class: acl.Admin, group: "operators",
			summary: "Turns the refusal of new jobs on or off.", since: "1.0.0", run: cmdDrain},

		// The connection.
		{name: "PING", syntax: "[message]", arity: -1, most: 2, flags: flagFast | flagPipeline | flagEarly, group: "connection",
			summary: "Answers PONG, or the message.", since: "1.0.0", run: cmdPing},
		{name: "ECHO", syntax: "message", arity: 2, flags: flagFast | flagPipeline | flagEarly, group: "connection",
			summary: "Answers the message.", since: "1.0.0", run: cmdEcho},
		{name: "QUIT", arity: -1, flags: flagFast | flagEarly | flagStranger | flagNoMulti, group: "connection",
			summary: "Closes the connection.", since: "1.0.0", run: cmdQuit},
		{name: "RESET", arity: 1, flags: flagFast | flagEarly | flagStranger | flagNoMulti, group: "connection",
			summary: "Makes the connection what it was when it was new.", since: "1.0.0", run: cmdReset},
		{name: "HELLO", syntax: "[2|3 [AUTH user password] [SETNAME name]]", arity: -1, flags: flagFast | flagEarly | flagStranger | flagSecret, group: "connection",
			summary: "Chooses the protocol, and logs in.", since: "1.0.0", run: cmdHello},
		{name: "AUTH", syntax: "[user] password", arity: -2, most: 3, flags: flagFast | flagEarly | flagStranger | flagSecret, group: "connection",
			summary: "Logs in.", since: "1.0.0", run: cmdAuth},
		{name: "SELECT", syntax: "index", arity: 2, flags: flagFast | flagEarly, group: "connection",
			summary: "Takes database 0, the only one.", since: "1.0.0", run: cmdSelect},
		{name: "READONLY", arity: 1, flags: flagFast | flagEarly, group: "connection",
			summary: "Does nothing; for clients of clusters.", since: "1.0.0", run: cmdOK},
		{name: "READWRITE", arity: 1, flags: flagFast | flagEarly, group: "connection",
			summary: "Does nothing; for clients of clusters.", since: "1.0.0", run: cmdOK},
		{name: "CLIENT", arity: -2, group: "connection", since: "1.0.0",
			summary: "Manages connections.", sub: []*command{
				{name: "ID", arity: 2, flags: flagFast | flagEarly, summary: "Tells the connection's number.", run: cmdClientID},
				{name: "GETNAME", arity: 2, flags: flagFast | flagEarly, summary: "Tells the connection's name.", run: cmdClientGetName},
				{name: "SETNAME", syntax: "name", arity: 3, flags: flagFast | flagEarly, summary: "Names the connection.", run: cmdClientSetName},
				{name: "SETINFO", syntax: "LIB-NAME|LIB-VER text", arity: 4, flags: flagFast | flagEarly, summary: "Tells the client's library.", run: cmdClientSetInfo},
				{name: "INFO", arity: 2, flags: flagEarly, summary: "Describes the connection.", run: cmdClientInfo},
				{name: "LIST", syntax: "[TYPE type] [ID id…]", arity: -2, flags: flagEarly, class: acl.Admin, summary: "Describes all connections.", run: cmdClientList},
				{name: "KILL", syntax: "[address] [ID id] [ADDR address] [LADDR address] [USER name] [TYPE type] [SKIPME yes|no]", arity: -3, flags: flagEarly, class: acl.Admin,
					summary: "Closes connections.", run: cmdClientKill},
				{name: "UNBLOCK", syntax: "id [TIMEOUT|ERROR]", arity: -3, most: 4, flags: flagFast | flagEarly, class: acl.Admin,
					summary: "Ends the waiting of a FETCH.", run: cmdClientUnblock},
				{name: "NO-EVICT", syntax: "on|off", arity: 3, flags: flagFast | flagEarly, class: acl.Admin, summary: "Does nothing: clients are not evicted.", run: cmdClientOnOff},
				{name: "NO-TOUCH", syntax: "on|off", arity: 3, flags: flagFast | flagEarly, summary: "Does nothing: nothing is touched by reading.", run: cmdClientOnOff},
				{name: "REPLY", syntax: "ON|OFF|SKIP", arity: 3, flags: flagFast | flagEarly | flagNoMulti, summary: "Chooses whether commands are answered.", run: cmdClientReply},
				{name: "GETREDIR", arity: 2, flags: flagFast | flagEarly, summary: "Answers -1: there is no tracking.", run: cmdClientGetRedir},
				{name: "TRACKING", syntax: "on|off", arity: -3, flags: flagEarly, summary: "Is refused: there is nothing to cache.", run: cmdClientRefused},
				{name: "TRACKINGINFO", arity: 2, flags: flagEarly, summary: "Is refused: there is nothing to cache.", run: cmdClientRefused},
				{name: "CACHING", syntax: "yes|no", arity: 3, flags: flagEarly, summary: "Is refused: there is nothing to cache.", run: cmdClientRefused},
				{name: "MAINT_NOTIFICATIONS", syntax: "on|off", arity: -3, flags: flagEarly, summary: "Is refused: there are no such messages.", run: cmdClientRefused},
			}},

		// The server.
		{name: "COMMAND", arity: -1, flags: flagEarly, group: "server", since: "1.0.0",
			summary: "Describes all commands.", run: cmdCommand, most: 1, sub: []*command{
				{name: "COUNT", arity: 2, flags: flagFast | flagEarly, summary: "Counts the commands.", run: cmdCommandCount},
				{name: "LIST", syntax: "[FILTERBY ACLCAT|PATTERN|MODULE text]", arity: -2, most: 5, flags: flagEarly, summary: "Lists the names of commands.", run: cmdCommandList},
				{name: "INFO", syntax: "[name…]", arity: -2, flags: flagEarly, summary: "Describes commands.", run: cmdCommandInfo},
				{name: "DOCS", syntax: "[name…]", arity: -2, flags: flagEarly, summary: "Documents commands.", run: cmdCommandDocs},
			}},
		{name: "INFO", syntax: "[section…]", arity: -1, flags: flagRead | flagEarly, group: "server",
			summary: "Describes the server.", since: "1.0.0", run: cmdInfo},
		{name: "CONFIG", arity: -2, class: acl.Admin, group: "server", since: "1.0.0",
			summary: "Shows and changes settings of the server.", sub: []*command{
				{name: "GET", syntax: "pattern…", arity: -3, flags: flagRead | flagEarly, summary: "Shows settings.", run: cmdConfigGet},
				{name: "SET", syntax: "name value [name value]…", arity: -4, flags: flagEarly | flagSecret, summary: "Changes settings until the next start.", run: cmdConfigSet},
				{name: "RESETSTAT", arity: 2, flags: flagEarly, summary: "Sets the counters of the edge to zero.", run: cmdConfigResetStat},
			}},
		{name: "TIME", arity: 1, flags: flagFast | flagEarly, group: "server",
			summary: "Tells the wall clock: seconds and microseconds.", since: "1.0.0", run: cmdTime},
		{name: "DBSIZE", arity: 1, flags: flagRead | flagFast, class: acl.Operate, group: "server",
			summary: "Counts all jobs.", since: "1.0.0", run: cmdDBSize},
		{name: "SLOWLOG", arity: -2, class: acl.Admin, group: "server", since: "1.0.0",
			summary: "Shows what took long.", sub: []*command{
				{name: "GET", syntax: "[count]", arity: -2, most: 3, flags: flagEarly, summary: "Shows the newest entries.", run: cmdSlowlogGet},
				{name: "LEN", arity: 2, flags: flagFast | flagEarly, summary: "Counts the entries.", run: cmdSlowlogLen},
				{name: "RESET", arity: 2, flags: flagFast | flagEarly, summary: "Forgets the entries.", run: cmdSlowlogReset},
			}},
		{name: "MONITOR", arity: 1, flags: flagEarly | flagNoMulti, class: acl.Admin, group: "server",
			summary: "Shows all commands as they come.", since: "1.0.0", run: cmdMonitor},
		{name: "LATENCY", arity: -2, class: acl.Admin, group: "server", since: "1.0.0",
			summary: "Shows what took long, by event.", sub: []*command{
				{name: "LATEST", arity: 2, flags: flagEarly, summary: "Shows the newest of each event.", run: cmdLatencyLatest},
				{name: "HISTORY", syntax: "event", arity: 3, flags: flagEarly, summary: "Shows all of an event.", run: cmdLatencyHistory},
				{name: "RESET", syntax: "[event…]", arity: -2, flags: flagEarly, summary: "Forgets the events.", run: cmdLatencyReset},
			}},
		{name: "MEMORY", arity: -2, class: acl.Operate, group: "server", since: "1.0.0",
			summary: "Estimates memory.", sub: []*command{
				{name: "USAGE", syntax: "queue [SAMPLES n]", arity: -3, flags: flagRead, summary: "Estimates what a queue holds in memory.", run: cmdMemoryUsage},
				{name: "DOCTOR", arity: 2, flags: flagRead, summary: "Says what holds memory.", run: cmdMemoryDoctor},
			}},
		{name: "ACL", arity: -2, class: acl.Admin, group: "server", since: "1.0.0",
			summary: "Manages users.", sub: []*command{
				{name: "WHOAMI", arity: 2, flags: flagFast | flagEarly, summary: "Tells the connection's user.", run: cmdACLWhoAmI},
				{name: "LIST", arity: 2, flags: flagEarly, class: acl.Admin, summary: "Lists users with their rules.", run: cmdACLList},
				{name: "USERS", arity: 2, flags: flagEarly, class: acl.Admin, summary: "Lists the names of users.", run: cmdACLUsers},
				{name: "GETUSER", syntax: "name", arity: 3, flags: flagEarly, class: acl.Admin, summary: "Tells the rules of a user.", run: cmdACLGetUser},
				{name: "SETUSER", syntax: "name [rule…]", arity: -3, flags: flagWrite | flagSecret, class: acl.Admin, summary: "Makes or changes a user.", run: cmdACLSetUser},
				{name: "DELUSER", syntax: "name…", arity: -3, flags: flagWrite, class: acl.Admin, summary: "Deletes users and closes their connections.", run: cmdACLDelUser},
				{name: "CAT", syntax: "[class]", arity: -2, most: 3, flags: flagEarly, summary: "Lists the classes, or the commands of one.", run: cmdACLCat},
				{name: "GENPASS", syntax: "[bits]", arity: -2, most: 3, flags: flagEarly, summary: "Makes up a password.", run: cmdACLGenPass},
			}},
	}
}

// flatten numbers the commands, and has subcommands follow their container,
// from which they have group and, outside CLIENT, COMMAND and ACL, the class.
func flatten(top []*command) (all []*command) {
	add := func(cmd *command) {
		cmd.index = len(all)
		all = append(all, cmd)
	}
	for _, cmd := range top {
		add(cmd)
		own := cmd.name == "ACL" // some of its subcommands are everybody's
		help := &command{name: "HELP", arity: 2, flags: flagFast | flagEarly, summary: "Shows the subcommands."}
		if cmd.sub != nil {
			cmd.sub = append(cmd.sub, help)
			help.run = helpOf(cmd)
		}
		for _, sub := range cmd.sub {
			sub.parent, sub.group, sub.since = cmd, cmd.group, cmd.since
			if sub.class == 0 && !own && sub != help {
				sub.class = cmd.class
			}
			add(sub)
		}
		if own {
			cmd.class = 0
		}
	}
	return all
}

// helpOf answers with the subcommands of a container.
func helpOf(cmd *command) func(*conn, [][]byte) {
	return func(c *conn, _ [][]byte) {
		w := &c.b.out
		w.array(1 + 2*len(cmd.sub))
		w.simple(cmd.name + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")
		for _, sub := range cmd.sub {
			text := sub.name
			if sub.syntax != "" {
				text += " " + sub.syntax
			}
			w.simple(text)
			w.simple("    " + sub.summary)
		}
	}
}
