# Owns one PostgreSQL server of a test process, in the current folder:
#   sh server.sh <folder of the binaries> <port> <more options of the server>
# Reads commands from standard input and answers each with "ok" or "failed". When the
# input ends, because the tests are over or their process is dead, the server is
# stopped and the folder removed.
binaries=$1
port=$2
extra=$3
trap '' HUP INT TERM

init() {
	# Not synced: that matters only if the machine, not the server, crashes.
	"$binaries/initdb" --pgdata=data --username=postgres --auth=trust --encoding=UTF8 --no-locale --no-sync
}

start() {
	# Acknowledged commits must be on disk, as in production: crash tests rely on it.
	"$binaries/pg_ctl" start --wait --pgdata=data --log=log --options="\
		-c listen_addresses=127.0.0.1 -c port=$port -c unix_socket_directories='$PWD' \
		-c fsync=on -c synchronous_commit=on -c full_page_writes=on \
		-c shared_buffers=128MB -c max_connections=400 $extra"
}

crash() {
	"$binaries/pg_ctl" stop --wait --pgdata=data --mode=immediate
}

# The next start is that of a standby.
standby() {
	: >data/standby.signal
}

while read -r command; do
	if $command </dev/null >>log 2>&1; then echo ok; else echo failed; fi
done
crash </dev/null >>log 2>&1
rm -rf "$PWD"
