#!/bin/bash
# units.sh -- the systemd units of contrib/ are read by systemd without a complaint, and that of the
# status monitor takes the place of rpc-statd.service beside Debian's own units.
#
# Passing proves:
#  (1) every line that docs/monitor.md relies on is in contrib/holdfast-monitor.service;
#  (2) systemd-analyze finds no fault in either unit; where it is not installed, (1) has to do;
#  (3) neither exposes more than 2.0 of systemd-analyze security, both are reloaded by a signal and
#      watched, and the lock server excludes what would be a second lock manager;
#  (4) with rpc-statd.service as another name of it and rpc-statd-notify.service masked, the NFS server
#      can be started after it; with both as names of it systemd finds a cycle: what the mask is for;
#  (5) the settings in files.md, embedding.md and high-availability.md, and the template of a unit for
#      each group there, are read without a complaint, and do what those pages say.
# shellcheck disable=SC2317 # expect calls functions by their names
set -u
. "$(dirname "$0")/lib.sh"
contrib=$(cd "$(dirname "$0")/../../contrib" && pwd)
system=/lib/systemd/system
units=$work/units

has_line() { grep -qxF "$1" "$contrib/holdfast-monitor.service"; }
# complaints UNIT...: what systemd says of them, with our directory before its own.
complaints() { (cd "$units" && SYSTEMD_UNIT_PATH=$units: systemd-analyze verify --man=no "$@" 2>&1); }

# (1)
while read -r line; do
    expect "the unit" has_line "$line"
done << 'END'
Type=notify
PartOf=nfs-utils.service
IgnoreOnIsolate=yes
Before=nfs-server.service nfs-ganesha.service
Restart=always
CapabilityBoundingSet=CAP_NET_BIND_SERVICE
AmbientCapabilities=CAP_NET_BIND_SERVICE
Alias=rpc-statd.service
WantedBy=nfs-client.target nfs-server.service
END
expect "it is a monitor" grep -q '^ExecStart=[^ ]*holdfastd --role monitor --force$' "$contrib/holdfast-monitor.service"
for unit in holdfastd holdfast-monitor; do
    expect "$unit is reloaded" grep -qxF "ExecReload=/bin/kill -HUP \$MAINPID" "$contrib/$unit.service"
    expect "$unit is watched" grep -qx 'WatchdogSec=[1-9][0-9]*' "$contrib/$unit.service"
    expect "$unit comes before ganesha" grep -q '^Before=.*nfs-ganesha.service' "$contrib/$unit.service"
done
for other in rpc-statd nfs-server holdfast-monitor; do
    expect "no $other beside it" grep -q "^Conflicts=.*$other.service" "$contrib/holdfastd.service"
done
expect "it is not rpc-statd-notify" same "$(grep -c '^Alias=.*rpc-statd-notify' "$contrib/holdfast-monitor.service")" 0

# (2)
if ! command -v systemd-analyze > /dev/null; then
    echo "  systemd-analyze is not installed: only the lines were looked at"
    finish
fi
mkdir "$units"
daemon=$(realpath "$(dirname "$HOLDFAST")/../daemon/holdfastd")
for unit in holdfastd holdfast-monitor; do
    sed "s|/usr/local/sbin/holdfastd|$daemon|" "$contrib/$unit.service" > "$units/$unit.service"
    expect "$unit.service" same "$(complaints "$unit.service")" ""
done

# (3)
for unit in holdfastd holdfast-monitor; do
    exposure=$(systemd-analyze security --offline=yes --no-pager "$units/$unit.service" 2>&1 |
        sed -n 's/.*Overall exposure level.*: \([0-9.]*\) .*/\1/p')
    expect "$unit.service is exposed by $exposure" awk -v is="${exposure:-10}" 'BEGIN { exit !(is <= 2.0) }'
done

# (5) Beside the unit as it is.
docs=$contrib/../docs
# indented PAGE, block PAGE N: what it says.
indented() { awk '/^    \[Service\]$/ { inside = 1 } !/^    / { inside = 0 } inside' "$docs/$1.md" | sed 's/^    //'; }
block() { awk -v wanted="$2" '/^```/ { inside = !inside; count += inside; next } inside && count == wanted' "$docs/$1.md"; }
# settings NAME: of standard input, as systemd reads the unit with them.
settings() {
    mkdir -p "$units/holdfastd.service.d"
    cat > "$units/holdfastd.service.d/page.conf"
    expect "$1 has settings" grep -q '^\[Service\]' "$units/holdfastd.service.d/page.conf"
    expect "the settings of $1" same "$(complaints holdfastd.service)" ""
}
indented files | settings files.md
expect "files are served as root" grep -qx DynamicUser=no "$units/holdfastd.service.d/page.conf"
indented embedding | settings embedding.md
block high-availability 4 | settings "high-availability.md"
expect "a server that was replaced is the next standby" grep -qx 'RestartPreventExitStatus=2 71 78' \
    "$units/holdfastd.service.d/page.conf"
rm -r "$units/holdfastd.service.d"
# The page says: a copy of the unit with these settings.
{ cat "$units/holdfastd.service" && block high-availability 4 && block high-availability 9; } |
    sed "s|/usr/local/sbin/holdfastd|$daemon|" > "$units/holdfastd@.service"
expect "the template of groups" same "$(complaints holdfastd@1.service)" ""
expect "each process has its socket" grep -q "^ExecStart=$daemon .*--control /run/holdfast/%i.sock" "$units/holdfastd@.service"

# (4)
if [ -e "$system/nfs-server.service" ] && [ -e "$system/rpc-statd.service" ]; then
    ln -s holdfast-monitor.service "$units/rpc-statd.service"
    ln -s /dev/null "$units/rpc-statd-notify.service"
    expect "beside the NFS server" same "$(complaints holdfast-monitor.service nfs-server.service)" ""
    ln -sf holdfast-monitor.service "$units/rpc-statd-notify.service"
    sed -i 's/^Alias=.*/& rpc-statd-notify.service/' "$units/holdfast-monitor.service"
    expect "both names are a cycle" matches "$(complaints holdfast-monitor.service nfs-server.service)" \
        'ordering cycle'
else
    echo "  the NFS server's units are not installed: not looked at beside them"
fi
finish
