package ops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentsite/agents/power"
	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/node/config"

	"github.com/go-json-experiment/json"
)

// At PowerOffSocket a service asks the superuser to power the machine off. Only the superuser can have made it there.
const PowerOffSocket = "/run/agentsite-poweroff.sock"

// minUptime is the time that the machine has been on at least before it is powered off: it never goes off in a loop in
// which nobody can change its configuration.
const minUptime = 5 * time.Minute

// powerOffAnswer is the answer to a connection, which is the request.
type powerOffAnswer struct {
	Refused string `json:"refused,omitzero"` // why the machine stays on; "" where it is powered off
}

// PowerOff has the machine powered off by the superuser's service at the socket. It returns once the service has
// accepted that.
func PowerOff(ctx context.Context, socket string) error {
	var conn net.Conn
	err := errors.ErrUnsupported
	if runtime.GOOS == "linux" { // on other systems anybody may make a file where the socket would be
		conn, err = new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	if err != nil {
		return device.Faultf(device.Unavailable,
			"nothing here may power the machine off for the site, as the package and the SD-card image do: %w", err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	var answer powerOffAnswer
	if err := json.UnmarshalRead(io.LimitReader(conn, 64<<10), &answer); err != nil {
		return fmt.Errorf("agentsite prepare --poweroff does not answer: %w", err)
	}
	if answer.Refused != "" {
		return device.Faultf(device.Denied, "%s", answer.Refused)
	}
	return nil
}

// ServePowerOff answers one request of PowerOff. Its caller powers the machine off where there is no error. The request
// has no words: that the configuration, which is the superuser's, has the section is all that counts.
func ServePowerOff(o PrepareOptions, out io.Writer) error {
	err := superuser(o)
	if err == nil {
		err = o.mayPowerOff()
	}
	var answer powerOffAnswer
	if err != nil {
		answer.Refused = device.Clip(err.Error(), 2000)
	}
	return errors.Join(err, json.MarshalWrite(out, answer))
}

func (o PrepareOptions) mayPowerOff() error {
	cfg, file, _, err := config.LoadFile(o.Config, o.Drivers)
	switch {
	case err != nil:
		return err
	case !slices.ContainsFunc(cfg.Agents, powersOff):
		return device.Faultf(device.Denied, "%s does not have the machine powered off: it has no section %s", file,
			power.KindName)
	}
	text, err := os.ReadFile(filepath.Join("/", o.Root, "proc/uptime")) // proc(5)
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(text), " ")
	seconds, err := strconv.ParseFloat(first, 64)
	if err != nil || !(seconds >= minUptime.Seconds()) {
		return device.Faultf(device.Denied, "the machine started less than %s ago", device.FormatDuration(minUptime))
	}
	return nil
}

func powersOff(a config.Agent) bool { return a.Kind == power.KindName }

// powerFindings finds that nothing here can do what the section of the configuration says.
func powerFindings(cfg *config.Site, root string) []driver.Finding {
	if _, err := os.Stat(filepath.Join("/", root, PowerOffSocket)); err == nil || !slices.ContainsFunc(cfg.Agents, powersOff) {
		return nil
	}
	return []driver.Finding{{
		Severity: driver.Problem, Subject: power.KindName, Says: "nothing here can power the machine off for the site",
		Do: "install the package, or start its socket: sudo systemctl start agentsite-poweroff.socket",
	}}
}
