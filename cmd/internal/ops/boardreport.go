package ops

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
	"agentsite/device/host"
	"agentsite/device/kernel"
	"agentsite/device/scan"
	"agentsite/device/sysfs"
	"agentsite/node/acts"
	"agentsite/node/config"
	"agentsite/node/state"
	"agentsite/node/update"
	"agentsite/transport/owner/client"
)

// BoardReportOptions are the options of ReportBoard.
type BoardReportOptions struct {
	DoctorOptions
	Version string       // of this program
	Board   *board.Board // nil makes one
	Loop    string       // two bridged lines that the report tests, such as GPIO5,GPIO6; "" for none
}

// BoardReport tells developers about a board. It has no names that an owner gave, and no serial numbers, addresses
// or keys.
type BoardReport struct {
	Program string           `json:"program"` // its version, and what it was built for
	Model   string           `json:"model,omitzero"`
	System  string           `json:"system,omitzero"`
	Kernel  string           `json:"kernel,omitzero"`
	Memory  string           `json:"memory,omitzero"`
	CPUs    int              `json:"processors"`
	Started string           `json:"started,omitzero"` // when the running site did, after the kernel
	Boot    []string         `json:"boot,omitzero"`    // the lines of config.txt that turn parts on
	Buses   []string         `json:"buses,omitzero"`
	Kinds   []string         `json:"kernel_parts,omitzero"` // the drivers that the kernel has bound
	Parts   []acts.FoundPart `json:"parts"`
	Uses    []string         `json:"configured,omitzero"` // the drivers of the configuration
	Says    []string         `json:"findings,omitzero"`
	Loop    *testedLines     `json:"loop,omitzero"`
}

// testedLines is the result of a test of two bridged lines.
type testedLines struct {
	From board.Pin `json:"from"`
	To   board.Pin `json:"to"`
	board.Loop
	Slowest string `json:"slowest"`
}

// ReportBoard reports what this board is and has, as Scan finds it. It reads one byte from each I2C address, and
// drives the lines of Loop, which the configuration must not have. It blocks for some seconds.
func ReportBoard(ctx context.Context, o BoardReportOptions) (*BoardReport, error) {
	loop, err := parseLoop(o.Loop)
	if err != nil {
		return nil, err
	}
	b, root := cmp.Or(o.Board, board.On(board.Machine{Root: o.Root})), sysfs.Root(o.Root)
	health, ran := o.askRunning(ctx)
	cfg, _, _, err := config.LoadFile(o.configuration(health.Configuration), o.Drivers)
	if err != nil { // it is not about the file, but must not use its lines
		if loop != nil {
			return nil, fmt.Errorf("no line is driven while it is not known which ones the configuration uses: %w", err)
		}
		cfg = &config.Site{}
	}
	r := &BoardReport{
		Program: fmt.Sprintf("%s (%s, %s)", o.Version, update.Target(), runtime.Version()),
		Model:   b.Model(), System: system(root), Memory: memory(root), CPUs: runtime.NumCPU(),
		Kernel: strings.TrimSpace(root.Text("proc/sys/kernel/osrelease") + " " + root.Text("proc/sys/kernel/arch")),
		Boot:   bootLines(root.Text(b.ConfigFile())), Buses: buses(b, root), Kinds: kernelParts(root),
		Parts: []acts.FoundPart{},
	}
	if loop != nil {
		if r.Loop, err = testLines(b, cfg, loop[0], loop[1]); err != nil {
			return nil, err
		}
	}
	if up, err := strconv.ParseFloat(firstWord(root.Text("proc/uptime")), 64); err == nil {
		if ran > 0 && ran < up {
			r.Started = fmt.Sprintf("%.0f s after the kernel", up-ran)
		}
	}
	s := scan.Scan{Board: b, Root: root, Taken: claimed(cfg), Drivers: o.Drivers, Wired: true}
	found, trouble := s.Run(ctx)
	for _, f := range found {
		r.Parts = append(r.Parts, acts.FoundPart{
			Where: withoutSerial(f.Where), What: f.What, Confidence: string(f.Confidence), Says: withoutSerial(f.Says),
		})
	}
	for _, d := range cfg.Devices {
		r.Uses = append(r.Uses, d.Driver)
	}
	slices.Sort(r.Uses)
	r.Uses = slices.Compact(r.Uses)
	for _, f := range slices.Concat(
		trouble, b.Findings(ctx, nil), host.Findings(o.Root), kernel.Findings(o.Root, b.ConfigFile()),
	) {
		r.Says = append(r.Says, withoutSerial(string(f.Severity)+": "+f.Subject+": "+f.Says))
	}
	return r, nil
}

// parseLoop reads the names of two lines; it returns nil for none.
func parseLoop(text string) ([]board.Pin, error) {
	if text == "" {
		return nil, nil
	}
	names := strings.Split(text, ",")
	pins := make([]board.Pin, len(names))
	for i, name := range names {
		if err := pins[i].UnmarshalText([]byte(strings.TrimSpace(name))); err != nil {
			return nil, state.Mistakef("--loop: %w", err)
		}
	}
	if len(pins) != 2 {
		return nil, state.Mistakef("--loop takes two lines such as GPIO5,GPIO6, not %q", text)
	}
	return pins, nil
}

// testLines tests two lines that the configuration does not use.
func testLines(b *board.Board, cfg *config.Site, from, to board.Pin) (*testedLines, error) {
	for _, pin := range []board.Pin{from, to} {
		const tested = "\x00" // no device is called so
		uses := append(wiring(cfg), board.Use{Device: tested, Resources: []driver.Resource{pin.Resource()}})
		positions, _ := b.Header(uses)
		for _, p := range positions {
			if slices.Contains(p.Devices, tested) && len(p.Devices) > 1 {
				return nil, configured(pin, p.Devices[0])
			}
		}
		if name, ok := claimed(cfg)[pin.Resource().Name]; ok {
			return nil, configured(pin, name)
		}
	}
	l, err := b.TestLoop(from, to)
	if err != nil {
		return nil, err
	}
	return &testedLines{from, to, l, l.Slowest.Round(time.Microsecond).String()}, nil
}

func configured(pin board.Pin, name string) error {
	return device.Faultf(
		device.Busy, "%s is not driven, because the configuration uses it for %s: choose another line", pin, name,
	)
}

// askRunning asks the site that runs from the folder for its configuration's file and its uptime in seconds. Both are
// zero if none answers.
func (o BoardReportOptions) askRunning(ctx context.Context) (h acts.Health, ran float64) {
	if !o.Folder.Running() || o.Dial == nil {
		return h, 0
	}
	site, err := o.Dial()
	if err != nil {
		return h, 0
	}
	defer site.Close()
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	h, _ = client.Call(ctx, site.Owner, acts.HealthAct, acts.None{})
	now, err := site.Site.Status(ctx, agents.Principal{}, agents.SiteRequest{})
	if err == nil && len(now.Sites) == 1 {
		ran = now.Sites[0].Uptime
	}
	return h, ran
}

// system returns the name of the operating system (os-release(5)).
func system(root sysfs.Root) string {
	for line := range strings.Lines(root.Text("etc/os-release")) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			return strings.Trim(name, `"'`)
		}
	}
	return ""
}

// memory returns the memory of the machine, and how much of it is free for programs.
func memory(root sysfs.Root) string {
	size := make(map[string]int)
	for line := range strings.Lines(root.Text("proc/meminfo")) {
		name, rest, _ := strings.Cut(line, ":")
		size[name], _ = strconv.Atoi(firstWord(rest))
	}
	if size["MemTotal"] == 0 {
		return ""
	}
	return fmt.Sprintf("%d MB, %d MB free", size["MemTotal"]>>10, size["MemAvailable"]>>10)
}

func firstWord(text string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	return word
}

// bootLines returns the lines of config.txt that turn parts of the board on.
func bootLines(text string) (all []string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "dtoverlay") || strings.HasPrefix(line, "dtparam") || strings.HasPrefix(line, "gpio=") {
			all = append(all, line)
		}
	}
	return all
}

// buses lists the buses that programs can use, and the controllers of PWM.
func buses(b *board.Board, root sysfs.Root) (all []string) {
	for _, bus := range b.Buses() {
		all = append(all, strings.TrimSpace(bus.Name+" "+bus.Adapter))
	}
	for _, pattern := range []string{
		"dev/spidev*", "sys/bus/w1/devices/w1_bus_master*", "sys/class/pwm/pwmchip*", "dev/watchdog", "sys/class/rtc/rtc*",
	} {
		for _, path := range root.Glob(pattern) {
			all = append(all, filepath.Base(path))
		}
	}
	return all
}

// kernelParts returns the names of the parts that the kernel measures with.
func kernelParts(root sysfs.Root) (all []string) {
	for _, pattern := range []string{
		"sys/bus/iio/devices/iio:device*/name", "sys/class/hwmon/hwmon*/name", "sys/class/thermal/thermal_zone*/type",
	} {
		for _, path := range root.Glob(pattern) {
			all = append(all, sysfs.Text(path))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// serials match the IDs of single parts: on 1-Wire, and hardware addresses of networks.
var serials = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b([0-9a-f]{2}-)[0-9a-f]{12}\b|\b(?i:[0-9a-f]{2}:){5}[0-9a-f]{2}\b`)
})

func withoutSerial(text string) string { return serials().ReplaceAllString(text, "${1}…") }

// Text returns the report in lines, for an issue.
func (r *BoardReport) Text() string {
	var b strings.Builder
	line := func(label, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%-12s %s\n", label+":", text)
		}
	}
	line("program", r.Program)
	line("board", cmp.Or(r.Model, "not known"))
	line("system", r.System)
	line("kernel", r.Kernel)
	line("memory", r.Memory)
	line("processors", strconv.Itoa(r.CPUs))
	line("site started", r.Started)
	line("config.txt", strings.Join(r.Boot, ", "))
	line("buses", strings.Join(r.Buses, ", "))
	line("kernel parts", strings.Join(r.Kinds, ", "))
	line("configured", strings.Join(r.Uses, ", "))
	for _, p := range r.Parts {
		says := p.Where + ": " + p.What + " (" + p.Confidence + ")"
		if p.Says != "" {
			says += ", " + p.Says
		}
		line("part", says)
	}
	for _, f := range r.Says {
		line("finding", f)
	}
	if l := r.Loop; l != nil {
		edges := strconv.Itoa(l.Edges)
		if l.Edges < 0 {
			edges = "no"
		}
		line("loop", fmt.Sprintf("%s to %s: %d of %d levels arrived, %s edges were reported, the slowest after %s",
			l.From, l.To, l.Arrived, l.Changes, edges, l.Slowest))
	}
	return b.String()
}
