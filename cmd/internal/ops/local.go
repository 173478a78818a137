package ops

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"time"

	"agentsite/node/state"
)

// LocalSite describes a site on this machine, without asking it.
type LocalSite struct {
	Folder        string `json:"folder"`                 // of its data
	HasRun        bool   `json:"has_run"`                // a site ran from it before
	Configuration string `json:"configuration,omitzero"` // of the service
	Service       string `json:"service,omitzero"`       // as its manager has it: "active (running)"; "" for no service
	Update        bool   `json:"update_waits,omitzero"`  // for the service's next start
}

// systemdFolder is there where systemd runs.
const systemdFolder = "/run/systemd/system"

// serviceTimeout bounds the question to the service manager.
const serviceTimeout = time.Second

// ReadLocalSite describes the site of a folder.
func ReadLocalSite(ctx context.Context, f state.Folder) LocalSite {
	l := LocalSite{Folder: string(f), HasRun: f.HasRun()}
	if f != state.ServiceFolder {
		return l
	}
	if _, err := os.Stat(serviceConfig); err == nil {
		l.Configuration = serviceConfig
	}
	if _, err := os.Stat(systemdFolder); err == nil {
		l.Service = serviceState(ctx)
	}
	if updates, err := ReadUpdateStatus(UpdateOptions{}); err == nil {
		l.Update = updates.Waits
	}
	return l
}

// serviceState returns the state of the package's service; "" where there is none, or systemd does not tell.
func serviceState(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, serviceTimeout)
	defer cancel()
	said, err := exec.CommandContext(ctx, "systemctl", "show", restartUnit,
		"--property=LoadState,ActiveState,SubState,Result").Output()
	if err != nil {
		return ""
	}
	return describeService(string(said))
}

// describeService returns the state of a service in words, from its properties as systemctl show prints them.
func describeService(properties string) string {
	p := make(map[string]string)
	for line := range strings.Lines(properties) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		p[name] = value
	}
	switch {
	case p["LoadState"] != "loaded":
		return ""
	case p["ActiveState"] == "failed":
		return "failed (" + p["Result"] + "): sudo systemctl restart agentsite starts it"
	case p["ActiveState"] == "inactive":
		return "stopped: sudo systemctl start agentsite starts it"
	}
	return p["ActiveState"] + " (" + p["SubState"] + ")"
}
