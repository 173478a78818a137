// The detector makes a reading of all sources take minutes, and there is one goroutine.

//go:build !race

package layers

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// layer is a package, the packages of ours that it may import, and the reason.
type layer struct {
	folder string
	may    []string
	why    string
}

// everything marks a package that joins all others.
const everything = "*"

var mcpImports = []string{"transport/mcp/events", "transport/fault", "transport/rpc", "node", "agents", "agents/skill", "agents/task", "agents/tools", "device"}

// layers is the plan. A package that is not listed may not exist.
var layers = []layer{
	{"device", nil, "the vocabulary of physical things imports nothing of ours"},
	{"device/driver", []string{"device", "device/ucum"}, "a driver is described by what a device is"},
	{"device/guard", []string{"device"}, "output safety must not depend on access, protocols or drivers"},
	{"device/guard/proc", []string{"device", "device/guard"}, "it runs the guard in a process of its own; the caller passes the devices in"},
	{"device/alarm", nil, "it makes timers and knows no device"},
	{"device/sysfs", nil, "it reads files and knows no device"},
	{"device/ucum", []string{"device"}, "units belong to values, whatever measures them"},
	{"device/host", []string{"device", "device/driver", "device/sysfs"}, "a driver knows its hardware and none of its callers"},
	{"device/board", []string{"device", "device/driver", "device/sysfs"}, "buses and lines know the board, not the chips on it"},
	{"device/board/boardtest", []string{"device/board"}, "a fake of the board; imported by tests only"},
	{"device/board/pinout", []string{"device/board"}, "it draws the board's header"},
	{"device/gpio", []string{"device", "device/driver", "device/board"}, "a device on plain GPIO lines gets them from the board"},
	{"device/chip", []string{"device", "device/driver", "device/board", "device/ucum"}, "a chip gets its bus from the board"},
	{"device/kernel", []string{"device", "device/driver", "device/sysfs"}, "a driver knows its hardware and none of its callers"},
	{"device/sim", []string{"device", "device/driver"}, "a driver knows its hardware and none of its callers"},
	{"device/fake", []string{"device", "device/driver"}, "a fake knows a description, and nothing of what it stands in for"},
	{"device/lan", []string{"device"}, "it connects to devices of the home network, whatever they speak"},
	{"device/lan/lantest", []string{"device", "device/guard"}, "the suite must fit every driver, and runs it under a real guard"},
	{"device/esphome", []string{"device", "device/driver", "device/lan", "device/ucum"}, "a node is known by its messages only"},
	{"device/esphome/esphometest", nil, "a fake node shares no code with its driver; imported by tests only"},
	{"device/beacon", []string{"device", "device/driver"}, "an advertiser is known by its advertisements only"},
	{"device/modbus", []string{"device", "device/board", "device/driver", "device/lan"}, "a server is known by its registers; the serial port is the board's"},
	{"device/mqtt", []string{"device", "device/driver", "device/lan", "device/mqtt/packet", "device/ucum"}, "a device is known by its messages only"},
	{"device/mqtt/packet", nil, "packets are bytes, whatever they say"},
	{"device/mqtt/packet/packettest", nil, "a fake broker shares no code with what it tests; imported by tests only"},
	{"device/web", []string{"device", "device/driver", "device/lan", "device/ucum"}, "documents, Things and servers elsewhere are known by their answers only"},
	{"device/testbed", nil, "an emulated chip follows its datasheet; our drivers' assumptions must not leak into it"},
	{"device/testbed/guest", []string{"device/testbed"}, "the emulated board executes requests; the expectations are in the tests"},
	{"device/scan", []string{"device", "device/driver", "device/board", "device/kernel", "device/sysfs"}, "it finds devices, and runs none"},
	{"device/devicetest", []string{"device"}, "the suite must fit every driver"},
	{"agents", []string{"agents/principal", "device"}, "the vocabulary above devices is free of protocols"},
	{"agents/principal", []string{"device"}, "who a caller is, whatever it asks; a name's form is that of devices"},
	{"agents/event", []string{"agents"}, "the vocabulary of events, whatever they are made of"},
	{"agents/event/eventtest", []string{"agents", "agents/event", "device"}, "a scripted source; imported by tests only"},
	{"agents/task", []string{"agents", "device"}, "the vocabulary of tasks is free of who does them and of protocols"},
	{"agents/agent", []string{"agents", "agents/task", "device"}, "the vocabulary of hosted agents is free of their kinds"},
	{"agents/mcp", []string{"agents", "agents/agent", "agents/tools", "device"}, "a child is known by its messages; where its accepted tools are stored is passed in"},
	{"agents/heartbeat", []string{"agents", "agents/agent", "device"}, "a hosted agent calls the site's operations, like every other client"},
	{"agents/power", []string{"agents", "agents/agent", "agents/rule", "agents/rule/expr", "device"}, "a hosted agent reads the site's points; how the machine is powered off is passed in"},
	{"agents/notify", []string{"agents"}, "it coalesces changes, whatever they are of"},
	{"agents/task/tasktest", []string{"agents", "agents/task", "device"}, "the suite must fit every host of tasks"},
	{"agents/skill", nil, "a skill is a text, whoever offers it"},
	{"agents/tools", []string{"agents", "agents/op", "agents/skill", "agents/task", "device"}, "operations as tools, whatever site they are asked of"},
	{"agents/op", []string{"agents", "device"}, "a row knows who may ask and no protocol"},
	{"agents/group", []string{"agents", "agents/op", "agents/notify", "agents/task", "device"}, "a remote site is known by its responses; the connection is passed in"},
	{"agents/remote", []string{"agents", "agents/agent", "agents/group", "agents/task", "device"}, "other sites as agents have them; how one is reached is passed in"},
	{"agents/rule/calendar", nil, "a time table over the wall clock, whatever runs by it"},
	{"agents/rule/expr", []string{"device", "device/ucum"}, "an expression is evaluated over values, whoever asks"},
	{"agents/llm/chat", []string{"device"}, "a client of model servers knows no site and no task"},
	{"agents/llm/chat/chattest", []string{"agents/llm/chat"}, "a scripted server for tests; imported by tests only"},
	{"agents/llm", []string{"agents", "agents/principal", "agents/agent", "agents/llm/chat", "agents/task", "agents/tools", "device", "device/ucum"}, "a model calls the tools of the site, like every other client; what is stored is passed in"},
	{"agents/conformance", []string{"agents", "agents/agent", "agents/task", "agents/tools", "device"}, "the public suite's fixtures are an agent and a library; only tests import them"},
	{"node", []string{"agents", "agents/principal", "agents/op", "agents/notify", "agents/tools", "device", "device/alarm", "device/guard"}, "the single entry point: what it needs comes as interfaces, in the words of devices, the guard and agents"},
	{"node/identity", nil, "keys are the lowest layer"},
	{"node/quota", nil, "it groups callers by address; what is counted is passed in"},
	{"node/access", []string{"agents", "agents/principal", "device", "node/identity"}, "permissions are decided by names alone, and a refusal is a fault; operations are executed elsewhere"},
	{"node/journal", []string{"device", "node", "node/identity", "node/state"}, "it records the node's calls in the node's types; identity has the codec, and state replaces files"},
	{"node/journal/journaltest", nil, "it damages files, whatever they contain"},
	{"node/history", []string{"device", "node/state"}, "it stores readings; state syncs folders"},
	{"node/config", []string{"agents", "agents/agent", "agents/task", "agents/rule/calendar", "device", "device/driver", "device/fake", "node/identity", "device/ucum"}, "each driver and each kind of agent decodes its own part"},
	{"agents/rule", []string{"agents", "agents/agent", "agents/rule/calendar", "agents/rule/expr", "device", "device/alarm"}, "a hosted agent calls the site's operations, like every other client"},
	{"agents/routine", []string{"agents", "agents/agent", "agents/rule", "agents/rule/calendar", "agents/rule/expr", "agents/task", "device"}, "a hosted agent calls the site's operations, like every other client; its words are those of rules"},
	{"agents/rule/trial", []string{"agents", "agents/rule", "device", "device/guard"}, "the machines of a rule and of the guard in virtual time; what is stored comes as an interface"},
	{"node/hosted", []string{"agents", "agents/principal", "agents/agent", "agents/task", "agents/tools", "agents/rule/calendar", "device", "node", "node/access", "node/config"}, "hosted agents are run by the configuration, with the permissions of grants; the kinds and the site that they ask are passed in"},
	{"node/elsewhere", []string{"agents", "agents/op", "agents/principal", "device", "node"}, "it routes calls to the node or to other sites, which are passed in; the node decides about all of them"},
	{"node/tasks", []string{"agents", "agents/principal", "agents/task", "device", "node/hosted", "node/identity", "node/state"}, "tasks are worked on by hosted agents; who may ask comes as an interface, identity has the codec, and state syncs folders"},
	{"node/bundle", []string{"device", "node/access", "node/identity"}, "a signed file: keys, the grammar of permissions and the names of points"},
	{"node/imports", []string{"agents", "agents/agent", "device", "node/access", "node/bundle", "node/config", "node/hosted"}, "bundles become entries as of the configuration, with the points of this site; the file and the manager are passed in"},
	{"node/rollback", []string{"agents", "agents/op", "device", "node/state"}, "a trial is of a file: how it is used, and what is wrong with the site, is passed in"},
	{"node/acts", []string{"agents", "agents/principal", "agents/agent", "agents/op", "agents/rule/trial", "device", "node", "node/access", "node/bundle", "node/config", "node/hosted", "node/identity", "node/imports", "node/journal", "node/logs", "node/push", "node/rollback", "node/state", "node/state/backup"}, "the owners' operations on the site; what they need of it comes as values"},
	{"node/occurrence", []string{"agents", "device", "device/guard", "node"}, "what has happened is decided from the node's and the guard's state, which are passed in"},
	{"node/events", []string{"agents", "agents/event", "agents/rule/expr", "agents/task", "device", "node/history", "node/occurrence"}, "events are made from what is recorded, in the rules' language, whoever delivers them; the node decides who reads, and is passed in"},
	{"node/logs", []string{"agents", "agents/op", "device"}, "it keeps lines of the log, whoever writes them"},
	{"node/push", []string{"agents", "agents/op", "device"}, "it keeps where phones are told, whoever tells them; the file, and who may, are passed in"},
	{"node/outbox", []string{"device"}, "it keeps what waits for receivers, whatever they are and whatever has happened"},
	{"node/things", []string{"device", "node/quota"}, "registered descriptions are data of others, and a refusal is a fault; the file is passed in"},
	{"node/trials", []string{"agents", "agents/rule", "agents/rule/trial", "device", "device/guard", "node", "node/hosted"}, "a trial joins the site's rules with its points, its limits and its past"},
	{"node/devices", []string{"device", "device/board", "device/driver", "device/guard", "device/guard/proc", "node", "node/config"},
		"devices are opened, and outputs moved, for the node; the list of drivers and the data folder's files are passed in"},
	{"node/state", []string{"device", "device/driver", "device/guard", "node/access", "node/identity"}, "the data folder is paths, locks and modes, and opens the access store; it names the files of other packages, and reads the two of the emergency stop; a secret is read as drivers read theirs"},
	{"node/state/backup", []string{"agents", "agents/op", "device", "node/access", "node/bundle", "node/config", "node/identity", "node/state"}, "a backup is read as the site will read it, before anything is written"},
	{"node/update/remote", []string{"agents", "agents/op", "device"}, "it knows when a site may update itself; how programs are found, staged and started is passed in"},
	{"node/update", []string{"node/identity"}, "an update is verified by keys, whatever the program does"},
	{"transport/rpc", []string{"agents/principal"}, "a message has a sender, and is free of operations and tools"},
	{"transport/stdio", []string{"transport/rpc", "node/identity"}, "a carrier brings bytes, nothing else; a socket is one sender's"},
	{"transport/web", []string{"agents/principal", "device", "transport/rpc", "node/identity", "node/quota"}, "a carrier brings bytes and their sender, nothing else"},
	{"transport/page", []string{"agents/principal", "device", "node/identity", "node/push", "transport/web"}, "the page is a client as others are: it needs a carrier, and whose its sessions are; and takes how the phone of a session is told"},
	{"transport/web/metrics", []string{"transport/web", "node", "agents", "device", "device/guard"}, "a route over the node's readings and counters; what is stored is passed in"},
	{"transport/adapter", []string{"agents", "agents/op", "agents/task", "agents/tools", "device", "node", "node/identity", "node/things", "transport/rpc", "transport/web"}, "what adapters have in common: the node's callers, and HTTP"},
	{"transport/adapter/adaptertest", []string{"agents", "agents/task/tasktest", "agents/tools", "device", "device/guard", "device/sim", "node", "node/access", "node/identity", "transport/adapter", "transport/rpc", "transport/web"}, "a site for the tests of adapters; imported by tests only"},
	{"transport/a2a", []string{"agents", "agents/op", "agents/principal", "agents/task", "device", "node", "node/quota", "transport/adapter", "transport/rpc", "transport/web", "transport/webhook"}, "a protocol calls the node; how often it writes is counted by account"},
	{"transport/openapi", []string{"agents", "agents/op", "agents/task", "device", "node", "transport/adapter", "transport/rpc", "transport/web"}, "a protocol calls the node"},
	{"transport/catalog", []string{"transport/adapter", "transport/mcp", "transport/web"}, "it names what is spoken, and asks the site nothing"},
	{"transport/agora", []string{"agents", "agents/tools", "device", "transport/adapter", "transport/rpc", "transport/web"}, "a protocol renders the tools"},
	{"transport/aitp", []string{"agents", "agents/task", "agents/tools", "device", "transport/adapter", "transport/rpc", "transport/web"}, "a protocol renders the tools"},
	{"transport/fault", []string{"agents", "device", "transport/rpc", "transport/web/outbound"}, "the codes of faults, and calls of agents elsewhere that end in one, whatever the protocol"},
	{"transport/a2a/client", []string{"agents", "agents/task", "device", "node/identity", "transport/fault", "transport/rpc", "transport/web/outbound"}, "an agent elsewhere is known by its messages only"},
	{"transport/aios", []string{"agents", "agents/agent", "agents/task", "device", "transport/web/outbound"}, "the registry is known by its messages only; the tasks of the site are passed in"},
	{"transport/aios/aiostest", nil, "a registry for tests; imported by tests only"},
	{"transport/mqtt", []string{"agents", "agents/agent", "agents/task", "device", "device/mqtt/packet", "node/occurrence", "transport/web/outbound"}, "a broker proves nobody: its messages are wishes of one agent of the site"},
	{"transport/supervisor", []string{"agents", "agents/agent", "agents/principal", "device"}, "Home Assistant is one caller of the site; what is served to it is passed in"},
	{"transport/supervisor/supervisortest", nil, "a Supervisor for tests; imported by tests only"},
	{"transport/anp", []string{"agents", "agents/tools", "device", "transport/adapter", "transport/anp/did", "transport/fault", "transport/httpsig", "transport/rpc", "transport/web"}, "a protocol renders the tools"},
	{"transport/notify", []string{"agents", "agents/agent", "agents/task", "device", "node/occurrence", "node/outbox", "node/push", "transport/web/outbound"}, "a hosted agent tells receivers elsewhere; what has happened, and what waits, is passed in"},
	{"transport/export", []string{"agents", "agents/agent", "device", "transport/web/outbound"}, "a hosted agent reads the history by the site's operation; the clock, and the file of what was sent, are passed in"},
	{"transport/anp/did", []string{"node/identity", "transport/web/outbound"}, "a name's document is fetched and read, whoever it is for"},
	{"transport/anp/client", []string{"agents", "agents/task", "device", "node/identity", "transport/anp/did", "transport/fault", "transport/httpsig", "transport/rpc", "transport/web/outbound"}, "an agent elsewhere is known by its messages only"},
	{"transport/httpsig", nil, "a signature is of a request, whoever it is from"},
	{"transport/passkey", nil, "what a passkey signs is bytes, whatever they confirm"},
	{"transport/passkey/passkeytest", []string{"transport/passkey"}, "a browser for tests; imported by tests only"},
	{"transport/oauth", []string{"agents/principal", "device", "node/access", "node/acts", "node/identity", "node/quota", "transport/rpc", "transport/web", "transport/web/outbound"}, "clients sign in, an owner's act allows it, and a grant comes out"},
	{"transport/webhook", []string{"device", "transport/web/outbound"}, "messages are sent to hosts that the owner named, whatever they say; the file is passed in"},
	{"transport/web/outbound", nil, "it dials what the owner named, whatever is asked there"},
	{"transport/wot", []string{"agents", "agents/op", "agents/task", "device", "node", "node/identity", "node/things", "transport/adapter", "transport/rpc", "transport/web"}, "a protocol calls the node"},
	{"transport/wot/register", []string{"transport/web/outbound"}, "a description is sent to a directory, whatever it describes"},
	{"transport/p2p", []string{"agents/principal", "transport/rpc", "node/identity", "node/quota"}, "a carrier brings bytes and their sender, nothing else"},
	{"transport/public", []string{"node/identity", "node/quota", "transport/p2p", "transport/web/outbound"}, "it passes bytes on that it cannot read; who ends TLS is its caller's"},
	{"transport/public/look", []string{"node/acts", "transport/public", "transport/web/outbound"}, "a public name is called as everybody does; how to connect is passed in"},
	{"transport/public/certificate", nil, "a certificate is of a name; when and where it is stored are passed in"},
	{"transport/owner", append([]string{"agents/principal", "agents/op", "node/access", "node/acts", "node/identity", "node/state"}, mcpImports...), "the owners' operations as methods beside MCP, and the claim"},
	{"transport/owner/client", []string{"agents/op", "transport/owner", "node/access", "node/acts", "node/identity", "node/state", "device"}, "how a method is called is passed in, so that it depends on no carrier and not on MCP"},
	{"transport/mcp/events", []string{"agents", "agents/event", "agents/principal", "device", "node", "node/quota", "transport/rpc", "transport/webhook"}, "the methods of events for the servers of all revisions; what makes events is passed in"},
	{"transport/mcp", append([]string{"transport/mcp/view"}, mcpImports...), "a protocol calls the node"},
	{"transport/mcp/view", []string{"agents/tools"}, "a page that hosts show: it knows which tools it is for, and no caller"},
	{"transport/mcp/legacy", append([]string{"transport/mcp/view"}, mcpImports...), "older revisions are served by the official SDK, over the same node"},
	{"transport/mcp/client", []string{"transport/rpc", "agents", "agents/op", "agents/task", "agents/tools", "device"}, "the server is known by its messages only"},
	{"discovery", []string{"node/identity", "node/quota"}, "records of sites are free of tools"},
	{"discovery/bed", nil, "a network for tests is independent of the programs on it"},
	{"discovery/announce", []string{"discovery", "discovery/card", "node/identity"}, "the announcement comes as values; the media are passed in"},
	{"discovery/discoverytest", []string{"discovery", "node/identity"}, "the suite must fit every medium"},
	{"discovery/mdns", []string{"discovery", "node/identity"}, "a medium publishes and finds records; the directory verifies them"},
	{"discovery/card", []string{"discovery", "node/identity", "node/quota"}, "a site serves its own record; the directory verifies it"},
	{"discovery/dht", []string{"discovery", "discovery/card", "node/identity", "node/quota"}, "a medium publishes and finds records; the directory verifies them"},
	{"discovery/gossip", []string{"discovery", "node/identity", "node/quota"}, "a medium spreads announcements; how a record is fetched is passed in"},
	{"deploy/release", []string{"node/identity", "node/update"}, "the release tool needs an update's format only"},
	{"cmd/internal/chart", nil, "it draws numbers over time, whatever they are of"},
	{"cmd/internal/qr", nil, "it draws a text, whatever it says"},
	{"cmd/internal/memory", nil, "it limits the memory of any process"},
	{"cmd/internal/internet", []string{"transport/p2p", "transport/public", "discovery", "discovery/card", "discovery/dht", "discovery/gossip", "node/bundle", "node/config", "node/identity", "node/state", "cmd/internal/memory"},
		"it joins the carrier and the media; the announcement comes as functions, a search verifies bundles, and node/state has a relay's key"},
	{"cmd/internal/internet/memnet", nil, "a network in memory knows no protocol on it; imported by tests only"},
	{"cmd/internal/peer", []string{"agents", "agents/principal", "agents/agent", "agents/group", "agents/remote", "agents/skill", "agents/task", "agents/tools", "device", "node", "node/access", "node/bundle", "node/identity", "node/state", "transport/passkey", "transport/web", "transport/p2p", "transport/rpc", "transport/stdio",
		"transport/mcp", "transport/mcp/client", "transport/mcp/legacy", "agents/op", "node/acts", "transport/owner", "transport/owner/client", "discovery", "discovery/card", "discovery/mdns", "cmd/internal/internet"},
		"the client's side joins contacts, carriers and discovery; of device it needs names and kinds of faults, agents/tools renders what connect presents"},
	{"cmd/internal/fleet", []string{"agents", "cmd/internal/peer", "device", "node/acts", "node/rollback", "node/state", "node/update/remote", "transport/mcp/client", "transport/owner/client"},
		"it knows contacts and what kind of answer they give, not what is asked of them"},
	{"cmd/internal/homepage", []string{"agents", "agents/op", "agents/principal", "agents/tools", "cmd/internal/peer", "cmd/internal/qr", "device", "node/access", "node/acts", "node/identity", "transport/fault", "transport/owner/client", "transport/page", "transport/passkey", "transport/rpc", "transport/web"},
		"it joins the user's sites with the page; what is said at the terminal is passed in"},
	{"cmd/internal/hosting", []string{"agents", "agents/agent", "agents/heartbeat", "agents/llm", "agents/llm/chat", "agents/mcp", "agents/power", "agents/tools", "agents/remote", "agents/routine", "agents/rule", "agents/rule/trial", "agents/task", "cmd/internal/peer", "device", "device/guard", "discovery", "discovery/card", "node", "node/access", "node/bundle", "node/config", "node/elsewhere", "node/hosted", "node/identity", "node/imports", "node/occurrence", "node/outbox", "node/push", "node/state", "node/tasks", "node/trials", "transport/a2a/client", "transport/aios", "transport/export", "transport/notify", "transport/anp/client", "transport/mqtt", "transport/supervisor", "transport/owner", "transport/rpc"}, "it joins the kinds of agents with the site that hosts them"},
	{"cmd/internal/protocols", []string{"cmd/internal/internet", "device", "discovery/mdns", "node/config", "node/state", "node/things", "transport/a2a", "transport/adapter", "transport/agora", "transport/aitp", "transport/anp", "transport/anp/did", "transport/catalog", "transport/openapi", "transport/web", "transport/wot", "transport/wot/register"}, "the table of adapters, what they are found by, and what they store and run"},
	{"cmd/internal/homeassistant", []string{"cmd/internal/ops", "cmd/internal/site", "device", "node/config", "node/identity", "node/state", "transport/supervisor"}, "it joins what Home Assistant's Supervisor passes to a container with a site"},
	{"cmd/internal/site", []string{everything}, "the wiring"},
	{"cmd/internal/sitetest", []string{"cmd/internal/site", "node/devices", "node/state"}, "it starts a whole site, as the command line does"},
	{"cmd/internal/recording", []string{"agents", "device", "node/acts", "node/config"}, "it joins the points of a configuration with past readings"},
	{"cmd/internal/ops", []string{"agents/mcp", "agents/power", "device", "device/board", "device/board/pinout", "device/driver", "device/host", "device/kernel", "device/scan", "device/sysfs", "node/access", "node/config", "node/devices", "node/journal", "node/logs", "node/state", "node/update",
		"discovery", "discovery/mdns", "agents", "agents/agent", "node/acts", "node/hosted", "transport/owner/client", "transport/rpc"},
		"commands without a running site need the machine and the data folder; the list of drivers, and doctor's connection to the running site, are passed in"},
	{"cmd/internal/systemd", nil, "the service manager's protocol, whatever the program does"},
	{"cmd/internal/layers", nil, "it reads the sources, and links none"},
	{"cmd/internal/e2e/harness", []string{everything}, "whole-system tests see the whole system"},
	{"cmd/internal/e2e/harness/service", []string{"cmd/internal/e2e/harness", "discovery/bed", "node/access", "node/identity", "node/state", "node/update"}, "it starts sites, and signs their updates"},
	{"cmd/internal/e2e/harness/events", []string{"cmd/internal/e2e/harness"}, "a client and a receiver know a site by its addresses"},
	{"cmd/internal/e2e/harness/npm", []string{"cmd/internal/e2e/harness"}, "public programs know a site by its addresses"},
	{"cmd/agentsite", []string{"agents", "agents/principal", "agents/agent", "agents/llm", "agents/rule", "agents/rule/trial", "agents/task", "cmd/internal/chart", "cmd/internal/fleet", "cmd/internal/homeassistant", "cmd/internal/homepage", "cmd/internal/hosting", "cmd/internal/internet", "cmd/internal/ops", "cmd/internal/peer", "cmd/internal/qr", "cmd/internal/recording", "cmd/internal/site", "agents/op", "node/access", "node/acts", "node/bundle", "node/config", "node/devices", "node/hosted", "node/identity", "node/imports", "node/journal", "node/logs", "node/push", "node/rollback", "node/state", "node/state/backup", "node/update", "node/update/remote", "transport/anp/did", "transport/mcp/client", "transport/owner", "transport/owner/client", "transport/public", "transport/public/look", "transport/rpc", "transport/web", "discovery", "device", "device/board/pinout", "device/driver", "device/ucum"},
		"the command line parses and prints; ops, peer, the site and its client do the work, node/access has the grammar of permissions, and node/devices starts the guard's process"},
}

const module = "agentsite/"

func TestImports(t *testing.T) {
	for _, tags := range []string{"", "e2e"} {
		for pkg, imports := range packages(t, tags) {
			i := slices.IndexFunc(layers, func(l layer) bool { return l.folder == pkg })
			if i < 0 {
				t.Errorf("%s is not in the table: add it with its imports and the reason, or move its code to the package it belongs to", pkg)
				continue
			}
			for _, imp := range imports {
				if err := allowed(layers[i], imp); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

func allowed(l layer, imp string) error {
	if slices.Contains(l.may, everything) || slices.Contains(l.may, imp) {
		return nil
	}
	return fmt.Errorf("%s imports %s, which it may not: %s (it may import %v)", l.folder, imp, l.why, l.may)
}

// TestForbiddenImports shows that the table refuses imports.
func TestForbiddenImports(t *testing.T) {
	for _, arrow := range [][2]string{
		{"device/guard", "transport/rpc"}, {"transport/rpc", "node"}, {"node", "transport/rpc"},
		{"agents/tools", "node"}, {"node/devices", "node/state"}, {"transport/mcp/legacy", "transport/mcp"},
		{"transport/mcp", "transport/owner"}, {"transport/owner/client", "transport/mcp/client"},
	} {
		i := slices.IndexFunc(layers, func(l layer) bool { return l.folder == arrow[0] })
		if i < 0 || allowed(layers[i], arrow[1]) == nil {
			t.Errorf("%s may import %s", arrow[0], arrow[1])
		}
	}
}

// packages lists our packages and what of ours they import, tests left out: a
// test may use a fake from another package.
func packages(t *testing.T, tags string) map[string][]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-tags", tags, "-f", `{{if .GoFiles}}{{.ImportPath}} {{join .Imports " "}}{{end}}`, "agentsite/...")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	all := make(map[string][]string)
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		if len(words) == 0 { // nothing but tests
			continue
		}
		pkg := strings.TrimPrefix(words[0], module)
		all[pkg] = nil
		for _, imp := range words[1:] {
			if ours, ok := strings.CutPrefix(imp, module); ok {
				all[pkg] = append(all[pkg], ours)
			}
		}
	}
	if len(all) == 0 {
		t.Fatal("go list found no package of ours")
	}
	return all
}
