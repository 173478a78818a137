// Package homeassistant starts a site as an app (add-on) of Home Assistant: it reads what the Supervisor passes to the
// container, and makes a first configuration.
package homeassistant

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"

	"agentsite/cmd/internal/ops"
	"agentsite/cmd/internal/site"
	"agentsite/device"
	"agentsite/node/config"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/supervisor"

	"github.com/go-json-experiment/json"
)

// Options are the paths and addresses of an app in its container. In tests they are set; "" is the usual one.
type Options struct {
	Data       state.Folder
	Config     string
	Settings   string // the file of the app's options
	Supervisor string // its URL, by its IP address
	Listen     string // the address that Home Assistant calls
}

// The paths in the container of an app (docs/apps/configuration.md: /data is its own, and addon_config is at /config).
const (
	data     = "/data/agentsite"
	settings = "/data/options.json"
	folder   = "/config/"
)

// first is the first configuration of an app: Home Assistant sees everything, and moves nothing.
const first = `site: { name: homeassistant }
# The names of this machine in your network, for those who use the app without Home Assistant.
http: { hosts: [%s] }
discovery: { mdns: off }
# What users of Home Assistant may do on the page of this app, and its assistants by MCP.
homeassistant: { may: 'read *', mcp: on }
# What Home Assistant shows by MQTT, and may move. For a pump: may: 'read *, set garden/pump max 5m'
mqtt: { broker: homeassistant, may: 'read *' }
`

// App is an app that is ready to run.
type App struct {
	Folder state.Folder
	Config string
	Level  slog.Level // of the log
	Site   *site.HomeAssistant
	Did    []string // what was done for its configuration
	Doubt  error    // why not more was; nil for nothing
}

// Open reads what the Supervisor says, and makes the configuration if there is none. It waits for the Supervisor only
// then, and not for long.
func Open(ctx context.Context, o Options) (*App, error) {
	o.Data = cmp.Or(o.Data, data)
	o.Config = cmp.Or(o.Config, folder+config.DefaultFile)
	o.Settings, o.Supervisor, o.Listen = cmp.Or(o.Settings, settings), cmp.Or(o.Supervisor,
		supervisor.URL), cmp.Or(o.Listen, supervisor.Listen)
	a := &App{Folder: o.Data, Config: o.Config}
	owner, err := a.readSettings(o.Settings)
	if err != nil {
		return nil, state.Mistakef("the app's options: %w", err)
	}
	host, err := os.Hostname() // by which other containers know this one
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return nil, state.Mistake{Err: err}
	}
	client := &supervisor.Client{URL: o.Supervisor, Token: os.Getenv("SUPERVISOR_TOKEN")}
	os.Unsetenv("SUPERVISOR_TOKEN") // programs that the site runs do not get it
	os.Unsetenv("HASSIO_TOKEN")     // its older name
	app, err := supervisor.NewApp(client, net.JoinHostPort(host, port))
	if err != nil {
		return nil, state.Mistake{Err: err}
	}
	a.Site = &site.HomeAssistant{App: app, Listen: o.Listen, Owner: owner}
	name := "homeassistant" // of Home Assistant's own system
	if _, err := os.Stat(o.Config); err != nil {
		if says := client.Hostname(ctx); device.CheckName(says) == nil {
			name = says
		}
	}
	a.Did, a.Doubt = ops.PrepareApp(ctx, ops.PrepareOptions{
		Config: o.Config, Drivers: site.AllDrivers(), Folder: o.Data,
	}, fmt.Sprintf(first, name+".local"))
	return a, nil
}

// readSettings reads what the user set in Home Assistant, and returns the owner's did:key, "" for none.
func (a *App) readSettings(file string) (owner string, err error) {
	text, err := state.ReadUntrusted(file, config.MaxBytes)
	if err != nil || text == nil {
		return "", err
	}
	var set struct {
		Owner    string `json:"owner"`
		LogLevel string `json:"log_level"`
	}
	if err := json.Unmarshal(text, &set); err != nil {
		return "", err
	}
	if set.LogLevel != "" {
		if err := a.Level.UnmarshalText([]byte(set.LogLevel)); err != nil {
			return "", err
		}
	}
	if set.Owner != "" {
		if _, err := identity.Parse(set.Owner); err != nil {
			return "", fmt.Errorf("owner: %w", err)
		}
	}
	return set.Owner, nil
}
