# Runs in namespaces of its own, so that /var/lib is nobody else's: $1 is the program.
mount -t tmpfs -o mode=755 none /var/lib
cp "$1" /var/lib/agentsite-program
mkdir -m 755 /var/lib/home
chown nobody:games /var/lib/home
install -d -o games -g games -m 750 /var/lib/agentsite
cd /var/lib
for name in service own; do
	printf 'site: { name: %s }\ndevices: { %s: { driver: sim, model: relay } }\n' $name $name >$name.yaml
done
p=/var/lib/agentsite-program
unset XDG_STATE_HOME XDG_CONFIG_HOME STATE_DIRECTORY
export HOME=/var/lib/home
wait_for() {
	for _ in $(seq 200); do
		[ ! -S "$1" ] || return 0
		sleep 0.05
	done
	return 1
}
points() { awk '/\/relay/ { print $1 }'; }
ended() { # a process that got SIGTERM
	for _ in $(seq 200); do
		kill -0 $1 2>/dev/null || return 0
		sleep 0.05
	done
	return 1
}
STATE_DIRECTORY=/var/lib/agentsite setpriv --reuid=games --regid=games --clear-groups $p run --config service.yaml --listen 127.0.0.1:0 >/dev/null 2>service.log &
service=$!
wait_for agentsite/site.sock
echo superuser: $($p points | points)
echo group: $(setpriv --reuid=nobody --regid=games --clear-groups $p points | points)
code=0
said=$(setpriv --reuid=nobody --regid=nogroup --clear-groups $p points 2>&1) || code=$?
echo others: $code $said
setpriv --reuid=nobody --regid=games --clear-groups $p run --config own.yaml --listen 127.0.0.1:0 >/dev/null 2>own.log &
own=$!
wait_for home/.local/state/agentsite/site.sock
echo own: $(setpriv --reuid=nobody --regid=games --clear-groups $p points | points)
kill $own
ended $own
echo own ended: $(setpriv --reuid=nobody --regid=games --clear-groups $p points | points)
kill $service
ended $service
code=0
said=$(setpriv --reuid=nobody --regid=games --clear-groups $p points 2>&1) || code=$?
echo service ended: $code $said
