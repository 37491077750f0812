// Package clients runs other people's Redis clients against the real daemon:
// each connects, logs in, enqueues, waits for a job, acknowledges it, sends ten
// thousand commands in one pipeline, speaks TLS, and goes on after the daemon
// was killed and started again, without a warning.
//
// A client that is not installed skips its test, with PAWL_E2E=1 it fails it.
package clients
