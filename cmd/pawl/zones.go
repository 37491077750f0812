package main

// CRON names time zones. The binary carries them, since a small image or a
// Windows machine has no zone files, and two machines should fire alike.
import _ "time/tzdata"
