package mcp

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// UnitPrefix begins the names of the units of children, and of their sockets.
const UnitPrefix = "agentsite-child-"

// SocketPath returns where the service manager listens for a child.
func SocketPath(name string) string { return "/run/" + UnitPrefix + name + ".sock" }

// endPath returns the socket at which a connection makes the service manager end all processes of a
// child.
func endPath(name string) string { return "/run/" + UnitPrefix + name + ".end.sock" }

// Units returns the systemd units of a child. The site dials the first socket, and each connection
// starts a service; the second socket and its service end the child. program is the absolute path
// of the command's first word, and secrets the folder of the files. The agent was defined without a
// mistake. A child without isolation has no units.
func (a *Agent) Units(program, secrets string) (files map[string]string) {
	if a.Isolation == isolationNone {
		return nil
	}
	unit := UnitPrefix + a.name
	command := append([]string{program}, a.Command[1:]...)
	credentials := ""
	for _, variable := range slices.Sorted(maps.Keys(a.Secrets)) {
		credentials += "LoadCredential=" + variable + ":" + strings.ReplaceAll(filepath.Join(secrets, a.Secrets[variable]), "%", "%%") + "\n"
	}
	if credentials != "" { // a child reads variables, and the manager's own would show in its properties
		script := ""
		for _, variable := range slices.Sorted(maps.Keys(a.Secrets)) {
			script += fmt.Sprintf(`%s="$(cat "$CREDENTIALS_DIRECTORY/%s")" && export %s && `, variable, variable, variable)
		}
		command = append([]string{"/bin/sh", "-c", script + `exec "$@"`, "sh"}, command...)
	}
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = quoted(word)
	}
	// An empty network namespace does not hide the sockets of services, which have names in the file
	// system, such as those of D-Bus and Avahi: without a family there is no socket to reach them by. The
	// child's own connection is inherited.
	network, families := "PrivateNetwork=yes\n", "none"
	if a.Net {
		network, families = "", "AF_INET AF_INET6 AF_NETLINK"
	}
	return map[string]string{
		unit + ".socket":       fmt.Sprintf(socketUnit, "the socket of the child "+a.name, SocketPath(a.name)),
		unit + ".end.socket":   fmt.Sprintf(socketUnit, "the socket that ends the child "+a.name, endPath(a.name)),
		unit + ".end@.service": fmt.Sprintf(endUnit, a.name, unit),
		unit + "@.service":     fmt.Sprintf(serviceUnit, a.name, strings.Join(words, " "), credentials, unit, unit, unit, network, families),
	}
}

// quoted returns a word as ExecStart= reads it: without specifiers and variables.
func quoted(word string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `%`, `%%`, `$`, `$$`).Replace(word) + `"`
}

const socketUnit = `# Made by agentsite prepare of the configuration: do not edit.
[Unit]
Description=agentsite: %s

[Socket]
ListenStream=%s
Accept=yes
SocketGroup=agentsite
SocketMode=0660
# One runs, and another may still be ending.
MaxConnections=2
TriggerLimitIntervalSec=0
RemoveOnStop=yes
`

// endUnit takes no word from its connection, and keeps it until the child is gone.
const endUnit = `# Made by agentsite prepare of the configuration: do not edit.
[Unit]
Description=agentsite: ends the child %s
CollectMode=inactive-or-failed

[Service]
Type=oneshot
Slice=system.slice
ExecStart=systemctl stop %s@*.service
TimeoutStartSec=15
LogLevelMax=notice
ProtectSystem=strict
ProtectHome=yes
ProtectProc=invisible
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
PrivateDevices=yes
PrivateTmp=yes
PrivateNetwork=yes
NoNewPrivileges=yes
CapabilityBoundingSet=
RestrictAddressFamilies=AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
# io_uring makes sockets that the filter of socket(2) does not see.
SystemCallFilter=~@aio
SystemCallErrorNumber=EPERM
UMask=0077
`

const serviceUnit = `# Made by agentsite prepare of the configuration: do not edit.
[Unit]
Description=agentsite: the child %s
CollectMode=inactive-or-failed

[Service]
# The slice of its own that it would have stays when it is gone.
Slice=system.slice
ExecStart=%s
%sStandardInput=socket
StandardOutput=socket
StandardError=journal
LogRateLimitIntervalSec=30
LogRateLimitBurst=100
# It ends with its connection, or the site has it ended. Nothing runs longer than a day.
RuntimeMaxSec=1d
TimeoutStopSec=5
DynamicUser=yes
StateDirectory=%s
StateDirectoryMode=0700
WorkingDirectory=/var/lib/%s
Environment=HOME=/var/lib/%s
%sRestrictAddressFamilies=%s
PrivateDevices=yes
DevicePolicy=closed
PrivateTmp=yes
PrivateMounts=yes
ProtectSystem=strict
ProtectHome=yes
ProtectProc=invisible
ProcSubset=pid
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
InaccessiblePaths=-/run/agentsite -/var/lib/agentsite -/var/lib/agentsite-update -/etc/agentsite
InaccessiblePaths=-/run/dbus -/run/avahi-daemon -/run/NetworkManager -/run/systemd/private -/run/systemd/resolve/io.systemd.Resolve
NoNewPrivileges=yes
CapabilityBoundingSet=
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RemoveIPC=yes
LockPersonality=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
# io_uring makes sockets that the filter of socket(2) does not see.
SystemCallFilter=~@aio
SystemCallErrorNumber=EPERM
UMask=0077
# Node makes programs at run time: no MemoryDenyWriteExecute.
MemoryMax=192M
OOMPolicy=kill
OOMScoreAdjust=500
TasksMax=64
LimitNOFILE=256
LimitFSIZE=64M
LimitCORE=0
CPUWeight=20
Nice=10
`
