/* hiredis. Arguments: port. TLS is not in Debian's main library. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static redisContext *dial(int port) {
	redisContext *c = redisConnect("127.0.0.1", port);
	if (c == NULL || c->err) {
		fprintf(stderr, "connect: %s\n", c ? c->errstr : "no memory");
		exit(1);
	}
	return c;
}

static void want(int ok, const char *what) {
	if (!ok) {
		fprintf(stderr, "not so: %s\n", what);
		exit(1);
	}
}

int main(int argc, char **argv) {
	int port = atoi(argv[argc > 1 ? 1 : 0]), i;
	char line[16];
	redisContext *c = dial(port);
	redisReply *r = redisCommand(c, "AUTH worker s3cret");
	want(r && r->type == REDIS_REPLY_STATUS && !strcmp(r->str, "OK"), "AUTH says OK");
	freeReplyObject(r);
	r = redisCommand(c, "ENQUEUE hi %b", "\0\r\n\xff", (size_t)4);
	want(r && r->type == REDIS_REPLY_ARRAY && r->elements == 2 && r->element[1]->len == 26, "ENQUEUE answers an ID");
	freeReplyObject(r);
	r = redisCommand(c, "FETCH hi 60000 WAIT 1000");
	want(r && r->type == REDIS_REPLY_ARRAY && r->elements == 6, "FETCH answers six elements");
	want(r->element[5]->len == 4 && !memcmp(r->element[5]->str, "\0\r\n\xff", 4), "the payload came back");
	redisReply *ack = redisCommand(c, "ACK %b", r->element[1]->str, r->element[1]->len);
	want(ack && ack->type == REDIS_REPLY_STATUS, "ACK says OK");
	freeReplyObject(ack);
	ack = redisCommand(c, "ACK %b", r->element[1]->str, r->element[1]->len);
	want(ack && ack->type == REDIS_REPLY_ERROR && !strcmp(ack->str, "ERR lease does not exist"), "a second ACK is refused");
	freeReplyObject(ack);
	freeReplyObject(r);
	r = redisCommand(c, "FETCH hi 60000");
	want(r && r->type == REDIS_REPLY_NIL, "FETCH on an empty queue is nil");
	freeReplyObject(r);
	for (i = 0; i < 10000; i++) redisAppendCommand(c, "ENQUEUE hi-many %d", i);
	for (i = 0; i < 10000; i++) {
		want(redisGetReply(c, (void **)&r) == REDIS_OK && r->type == REDIS_REPLY_ARRAY, "each command of the pipeline is answered");
		freeReplyObject(r);
	}
	puts("restart");
	fflush(stdout);
	if (!fgets(line, sizeof line, stdin)) return 1;
	redisFree(c);
	c = dial(port);
	freeReplyObject(redisCommand(c, "AUTH worker s3cret"));
	r = redisCommand(c, "MOXY.STATS hi-many");
	want(r && r->type == REDIS_REPLY_ARRAY && r->element[1]->integer == 10000, "all jobs are there after the restart");
	freeReplyObject(r);
	redisFree(c);
	printf("done %d.%d.%d\n", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
	return 0;
}
