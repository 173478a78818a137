package ops

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentsite/device"
	"agentsite/node/config"
	"agentsite/node/state"

	"github.com/go-json-experiment/json"
)

const rewriteYAML = `site: { name: shed } # mine
devices:
  air: { driver: "kernel:bme280", bus: i2c-1, address: 0x76 }
  fan: { driver: pwm, chip: pwmchip0, channel: 1, safe: 0, max_on: 1m }
  keys: { driver: lirc, device: /dev/lirc0, protocols: [nec], keys: { up: 1 } }
  room: { driver: sim, model: climate }
agents:
  look: { kind: mcp, command: [sh, -c, look], tools: [go], secrets: { KEY: look.key } }
`

// TestServeRewrite: the superuser writes for a service what changes nothing that the superuser does, and only to the
// named file.
func TestServeRewrite(t *testing.T) {
	changed := func(old, text string) string {
		if !strings.Contains(rewriteYAML, old) {
			t.Fatal(old)
		}
		return strings.Replace(rewriteYAML, old, text, 1)
	}
	const denied = device.Denied
	for name, tt := range map[string]struct {
		text, file, before string
		kind               device.FaultKind
	}{
		"a relay":            {text: changed("agents:", "  pump: { driver: relay, pin: GPIO17, safe: off, max_on: 1m }\nagents:")},
		"another name":       {text: changed("  air:", "  outside:")},
		"without a sensor":   {text: changed("  room: { driver: sim, model: climate }\n", "")},
		"of no power":        {text: changed("agents:", "  w1: { driver: iio, name: bme280 }\nagents:")},
		"plain permission":   {text: changed("tools: [go]", "tools: [go, stay]")},
		"kernel driver":      {text: changed("kernel:bme280", "kernel:bmp280"), kind: denied},
		"another bus":        {text: changed("i2c-1", "i2c-0"), kind: denied},
		"another address":    {text: changed("0x76", "0x77"), kind: denied},
		"a binding":          {text: changed("agents:", "  eeprom: { driver: iio, bind: { chip: at24, bus: i2c-1, address: 0x50 } }\nagents:"), kind: denied},
		"no binding":         {text: changed("  air: { driver: \"kernel:bme280\", bus: i2c-1, address: 0x76 }\n", ""), kind: denied},
		"a channel":          {text: changed("channel: 1", "channel: 0"), kind: denied},
		"nearly a channel":   {text: changed("chip: pwmchip0", "chip: 'pwmchip0\"'"), kind: denied},
		"a protocol":         {text: changed("[nec]", "[nec, rc-5]"), kind: denied},
		"a command":          {text: changed("sh, -c, look", "sh, -c, leak"), kind: denied},
		"a program":          {text: changed("[sh, -c", "[cat, -c"), kind: denied},
		"a secret":           {text: changed("look.key", "other.key"), kind: denied},
		"a secret elsewhere": {text: changed("look.key", "../../etc/shadow"), kind: "any"},
		"the network":        {text: changed("tools: [go]", "tools: [go], net: true"), kind: denied},
		"an end of power":    {text: rewriteYAML + "power: { off_when: room/temperature > 5 Cel }\n", kind: denied},
		"a child":            {text: changed("  look:", "  more: { kind: mcp, command: [id], tools: [go] }\n  look:"), kind: denied},
		"no child":           {text: rewriteYAML[:strings.Index(rewriteYAML, "agents:")], kind: denied},
		"as the site":        {text: changed("tools: [go]", "tools: [go], isolation: none"), kind: denied},
		"a unit's line":      {text: changed("look:", "\"look\\nExecStart=id\":"), kind: "any"},
		"mistaken":           {text: changed("driver: sim", "driver: none"), kind: "any"},
		"no text":            {text: "site: { name: a } # \xff", kind: "any"},
		"large":              {text: rewriteYAML + strings.Repeat("#", config.MaxBytes), kind: device.Invalid},
		"another file":       {text: "site: { name: a }\n", file: "etc/other.yaml", kind: denied},
		"of another text":    {text: "site: { name: a }\n", before: "site: { name: b }\n", kind: "changed"},
	} {
		t.Run(name, func(t *testing.T) {
			o := flashed(t, map[string]string{"etc/agentsite.yaml": rewriteYAML, "etc/other.yaml": "other"})
			r := rewriting{File: o.Config, Before: rewriteYAML, Text: tt.text}
			if tt.file != "" {
				r.File = filepath.Join(o.Root, tt.file)
			}
			if tt.before != "" {
				r.Before = tt.before
			}
			before := files(t, o.Root)
			answer, err := served(o, r)
			var f *device.Fault
			switch {
			case tt.kind == "":
				if err != nil || answer != (rewritten{}) {
					t.Fatal(answer, err)
				}
				text, _ := os.ReadFile(o.Config)
				kept, _ := os.ReadFile(o.Config + state.Before)
				if string(text) != tt.text || string(kept) != rewriteYAML {
					t.Errorf("%s\nbefore %s", text, kept)
				}
				return
			case tt.kind == "changed":
				if !answer.Changed || !errors.Is(err, state.ErrChanged) {
					t.Error(answer, err)
				}
			case err == nil:
				t.Error("it is written")
			case tt.kind != "any" && (!errors.As(err, &f) || f.Kind != tt.kind || answer.Refused == ""):
				t.Error(answer, err)
			}
			for path, text := range files(t, o.Root) {
				if before[path] != text {
					t.Errorf("%s is %s", path, text)
				}
			}
		})
	}
}

// TestServeRewriteMistaken: a configuration that cannot be read is its owner's alone, and so is what is no file.
func TestServeRewriteMistaken(t *testing.T) {
	o := flashed(t, map[string]string{"etc/agentsite.yaml": "devices: {"})
	if answer, err := served(o, rewriting{o.Config, "devices: {", "site: { name: a }\n"}); err == nil || answer.Refused == "" {
		t.Error(answer, err)
	}
	if err := errors.Join(os.Remove(o.Config), os.Mkdir(o.Config, 0o755)); err != nil {
		t.Fatal(err)
	}
	if answer, err := served(o, rewriting{o.Config, "", "site: { name: a }\n"}); err == nil {
		t.Error(answer)
	}
	for _, words := range []string{"", "null", "[]", `{"file":1}`, `{"text":"a"`, strings.Repeat("{", 1<<16)} {
		var out bytes.Buffer
		if err := ServeRewrite(o, strings.NewReader(words), &out); err == nil {
			t.Errorf("%.20q: %s", words, &out)
		}
	}
}

func served(o PrepareOptions, r rewriting) (answer rewritten, err error) {
	request, _ := json.Marshal(r)
	var out bytes.Buffer
	err = ServeRewrite(o, bytes.NewReader(request), &out)
	if b, _ := io.ReadAll(&out); json.Unmarshal(b, &answer) != nil {
		return answer, errors.Join(err, errors.New("no answer: "+string(b)))
	}
	return answer, err
}

// TestRewriteCut: a service that is ended before it answers has replaced the file or has not, and that is what counts.
func TestRewriteCut(t *testing.T) {
	for _, done := range []bool{false, true} {
		folder := t.TempDir()
		file := filepath.Join(folder, "site.yaml")
		ln, err := net.Listen("unix", filepath.Join(folder, "s"))
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		served := make(chan error, 1)
		go func() {
			conn, err := ln.Accept()
			if err == nil {
				_, err = io.ReadAll(conn)
			}
			if done {
				err = errors.Join(err, os.WriteFile(file, []byte("new"), 0o600))
			}
			served <- errors.Join(err, conn.Close())
		}()
		conn, err := net.Dial("unix", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		err = askRewrite(conn.(*net.UnixConn), file, []byte("old"), []byte("new"))
		if told := <-served; told != nil || (err == nil) != done {
			t.Errorf("done %t: %v, %v", done, err, told)
		}
	}
}
