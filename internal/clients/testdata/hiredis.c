/* hiredis. Arguments: port. TLS is not in the library that Debian has. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int port;

static void want(int ok, const char *what) {
	if (!ok) {
		fprintf(stderr, "not so: %s\n", what);
		exit(1);
	}
}

static redisContext *dial(void) {
	redisContext *c = redisConnect("127.0.0.1", port);
	if (c == NULL || c->err) {
		fprintf(stderr, "connect: %s\n", c ? c->errstr : "no memory");
		exit(1);
	}
	redisReply *r = redisCommand(c, "AUTH worker s3cret");
	want(r && r->type == REDIS_REPLY_STATUS && !strcmp(r->str, "OK"), "AUTH says OK");
	freeReplyObject(r);
	return c;
}

static void passed(const char *step) {
	printf("step %s\n", step);
	fflush(stdout);
}

/* ack acknowledges the job that a FETCH has answered, twice. */
static void ack(redisContext *c, redisReply *job) {
	redisReply *r = redisCommand(c, "ACK %b", job->element[1]->str, job->element[1]->len);
	want(r && r->type == REDIS_REPLY_STATUS, "ACK says OK");
	freeReplyObject(r);
	r = redisCommand(c, "ACK %b", job->element[1]->str, job->element[1]->len);
	want(r && r->type == REDIS_REPLY_ERROR && !strcmp(r->str, "ERR lease does not exist"), "a second ACK is refused");
	freeReplyObject(r);
}

/* waiting is how many fetches wait in the queue. */
static long long waiting(redisContext *c, const char *queue) {
	redisReply *r = redisCommand(c, "QUEUE INFO %s", queue);
	size_t i;
	long long n = -1;
	want(r && r->type == REDIS_REPLY_ARRAY, "QUEUE INFO answers an array");
	for (i = 0; i + 1 < r->elements; i += 2)
		if (!strcmp(r->element[i]->str, "waiting")) n = r->element[i + 1]->integer;
	freeReplyObject(r);
	want(n >= 0, "QUEUE INFO tells who waits");
	return n;
}

int main(int argc, char **argv) {
	char line[16];
	int i;
	want(argc > 1, "there is a port");
	port = atoi(argv[1]);
	redisContext *c = dial(), *waiter;
	passed("login");

	redisReply *r = redisCommand(c, "ENQUEUE hi %b", "\0\r\n\xff", (size_t)4), *job;
	want(r && r->type == REDIS_REPLY_ARRAY && r->elements == 2 && r->element[1]->len == 26, "ENQUEUE answers an ID");
	freeReplyObject(r);
	job = redisCommand(c, "FETCH hi 60000");
	want(job && job->type == REDIS_REPLY_ARRAY && job->elements == 6, "FETCH answers six elements");
	want(job->element[5]->len == 4 && !memcmp(job->element[5]->str, "\0\r\n\xff", 4), "the payload came back");
	passed("enqueue");
	ack(c, job);
	freeReplyObject(job);
	passed("ack");
	r = redisCommand(c, "FETCH hi 60000");
	want(r && r->type == REDIS_REPLY_NIL, "FETCH on an empty queue is nil");
	freeReplyObject(r);

	waiter = dial();
	redisAppendCommand(waiter, "FETCH hi 60000 WAIT 30000");
	for (i = 0; !i;) want(redisBufferWrite(waiter, &i) == REDIS_OK, "the FETCH is sent");
	while (waiting(c, "hi") == 0) {}
	freeReplyObject(redisCommand(c, "ENQUEUE hi late"));
	want(redisGetReply(waiter, (void **)&job) == REDIS_OK && job->type == REDIS_REPLY_ARRAY && job->elements == 6, "the FETCH that waits is answered");
	want(!strcmp(job->element[5]->str, "late"), "by the job that came");
	ack(waiter, job);
	freeReplyObject(job);
	redisFree(waiter);
	passed("wait");

	for (i = 0; i < 10000; i++) redisAppendCommand(c, "ENQUEUE hi-many %d", i);
	for (i = 0; i < 10000; i++) {
		want(redisGetReply(c, (void **)&r) == REDIS_OK && r->type == REDIS_REPLY_ARRAY, "each command of the pipeline is answered");
		freeReplyObject(r);
	}
	passed("pipeline");

	freeReplyObject(redisCommand(c, "MULTI"));
	freeReplyObject(redisCommand(c, "ENQUEUE hi-tx a"));
	freeReplyObject(redisCommand(c, "ENQUEUE hi-tx b"));
	r = redisCommand(c, "EXEC");
	want(r && r->type == REDIS_REPLY_ARRAY && r->elements == 2, "EXEC answers both");
	freeReplyObject(r);
	passed("transaction");

	puts("restart");
	fflush(stdout);
	if (!fgets(line, sizeof line, stdin)) return 1;
	r = redisCommand(c, "PING");
	want(r == NULL && c->err != 0, "the old connection is over");
	redisFree(c);
	c = dial();
	r = redisCommand(c, "MOXY.STATS hi-many");
	want(r && r->type == REDIS_REPLY_ARRAY && r->element[1]->integer == 10000, "all jobs are there after the restart");
	freeReplyObject(r);
	redisFree(c);
	passed("restart");
	printf("done %d.%d.%d\n", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
	return 0;
}
