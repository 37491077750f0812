// Package clients runs other people's Redis clients against the real daemon:
// each connects, logs in, enqueues, waits for a job, acknowledges it, sends ten
// thousand commands in one pipeline, speaks TLS, and goes on after the daemon
// was killed and started again, without a warning. What a client passed must be
// what docs/clients.md says of it; the examples there are run, too.
//
// The tests run with PAWL_E2E=1 only, and then fail where a client is missing.
package clients
