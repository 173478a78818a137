package ops

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"agentsite/agents/mcp"
	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/node/config"
	"agentsite/node/state"

	"github.com/go-json-experiment/json"
)

// At RewriteSocket a service that may not write its configuration asks the superuser for it. Only
// the superuser can have made it there.
const RewriteSocket = "/run/agentsite-config.sock"

// rewriteTimeout bounds a request, which is a few megabytes at most.
const rewriteTimeout = 20 * time.Second

// A rewriting is the request to replace a configuration, and a rewritten its answer.
type (
	rewriting struct {
		File   string `json:"file"` // its path without links
		Before string `json:"before"`
		Text   string `json:"text"`
	}
	rewritten struct {
		Changed bool   `json:"changed,omitzero"` // the file has another text than Before, and stays as it is
		Refused string `json:"refused,omitzero"` // why it stays as it is; "" for done
	}
)

// Rewrite replaces a configuration as state.Rewrite does. Where this user may not write the file, it asks the
// superuser's service at the socket, if there is one.
func Rewrite(socket, file string, before, text []byte) error {
	err := state.Rewrite(file, before, text)
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) || runtime.GOOS != "linux" {
		return err // on other systems anybody may make a file where the socket would be
	}
	conn, dialed := net.DialTimeout("unix", socket, rewriteTimeout)
	if dialed != nil {
		return err
	}
	defer conn.Close()
	return askRewrite(conn.(*net.UnixConn), file, before, text)
}

func askRewrite(conn *net.UnixConn, file string, before, text []byte) error {
	conn.SetDeadline(time.Now().Add(rewriteTimeout))
	var answer rewritten
	err := json.MarshalWrite(conn, rewriting{file, string(before), string(text)})
	if err == nil {
		err = conn.CloseWrite()
	}
	if err == nil {
		err = json.UnmarshalRead(io.LimitReader(conn, 64<<10), &answer)
	}
	if now, read := os.ReadFile(file); err != nil && read == nil && bytes.Equal(now, text) {
		return nil // it was ended after that
	}
	switch {
	case err != nil:
		return fmt.Errorf("agentsite prepare --rewrite does not answer: %w", err)
	case answer.Changed:
		return state.ErrChanged
	case answer.Refused != "":
		return device.Faultf(device.Denied, "%s", answer.Refused)
	}
	return nil
}

// ServeRewrite answers one request of Rewrite, for a service whose words the superuser does not trust. The new
// text may change nothing that the superuser does for a configuration.
func ServeRewrite(o PrepareOptions, in io.Reader, out io.Writer) error {
	if err := superuser(o); err != nil {
		return err
	}
	var r rewriting
	err := json.UnmarshalRead(io.LimitReader(in, 16*config.MaxBytes), &r) // a byte of a text may be six here
	if err == nil {
		err = o.rewrite(r)
	}
	answer := rewritten{Changed: errors.Is(err, state.ErrChanged)}
	if err != nil {
		answer.Refused = device.Clip(err.Error(), 2000)
	}
	return errors.Join(err, json.MarshalWrite(out, answer))
}

func (o PrepareOptions) rewrite(r rewriting) error {
	file, err := filepath.EvalSymlinks(o.Config) // a link stays one
	switch {
	case err != nil:
		return err
	case r.File != file:
		return device.Faultf(device.Denied, "only %s is written here", file)
	case len(r.Text) > config.MaxBytes || !utf8.ValidString(r.Text):
		return device.Faultf(device.Invalid, "it is no text of at most %d bytes", config.MaxBytes)
	}
	old, err := state.ReadUntrusted(file, config.MaxBytes)
	if err == nil && string(old) != r.Before {
		err = state.ErrChanged
	}
	if err != nil {
		return err
	}
	was, err := o.byRoot(old)
	if err != nil {
		return fmt.Errorf("%s has mistakes, and is changed only by its owner: %w", file, err)
	}
	wanted, err := o.byRoot([]byte(r.Text))
	if err != nil {
		return err
	}
	for step := range maps.Keys(was) {
		if !wanted[step] {
			return onlyByOwner(file, step)
		}
	}
	for step := range maps.Keys(wanted) {
		if !was[step] {
			return onlyByOwner(file, step)
		}
	}
	return state.Rewrite(file, old, []byte(r.Text))
}

func onlyByOwner(file, step string) error {
	title, _, _ := strings.Cut(step, "\n")
	return device.Faultf(device.Denied, "only the superuser may change what the superuser does for the site (%s): "+
		"change %s on its machine, as with sudo agentsite add --config %[2]s, and restart the site", title, file)
}

// byRoot returns all that Prepare may do for the text of a configuration, beside adding the sensors that it finds.
func (o PrepareOptions) byRoot(text []byte) (map[string]bool, error) {
	cfg, err := config.Parse(filepath.Base(o.Config), text, o.Drivers)
	if err != nil {
		return nil, err
	}
	steps := make(map[string]bool)
	for _, d := range cfg.Devices {
		if p, ok := d.Config.(driver.Preparer); ok {
			for _, step := range p.Prepares() {
				steps[step] = true
			}
		}
	}
	for _, c := range cfg.Agents {
		if powersOff(c) {
			steps["power the machine off"] = true
		}
		if c.Kind != mcp.KindName {
			continue
		}
		a, err := defineChild(c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
		units := a.Units(a.Command[0], "/")
		for _, name := range slices.Sorted(maps.Keys(units)) {
			steps["run the child "+c.Name+"\n"+name+"\n"+units[name]] = true
		}
	}
	return steps, nil
}
