package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"agentsite/cmd/internal/ops"
	"agentsite/cmd/internal/site"
	"agentsite/device"
	"agentsite/node/acts"
	"agentsite/node/config"

	"github.com/spf13/cobra"
)

// addition is a part that is added to a configuration.
type addition struct {
	*app
	at   configuration
	name string
	set  []config.Setting // the driver first, once it is known
	asks bool             // a person is there to be asked
}

func (a *app) addCommand() *cobra.Command {
	var file, root, driver string
	var set []string
	var dry, yes, keep bool
	cmd := &cobra.Command{
		Use: "add [NAME]", GroupID: groupBoard, Args: optional("NAME"),
		Short: "Add a part to the configuration",
		Long: `Add a part to the configuration of the running site or, where none runs, to a file. On a
terminal it offers the parts that it finds, asks for what is missing, shows the pins and
the change, and asks before it writes.

All else in the file stays as it is, and the text before is kept beside it, with .before
at its name. A running site uses the part at once. It goes back to the configuration
before if the part does not answer. The packaged service cannot write its file: use
sudo, with --config.`,
		Example: "  agentsite add\n" +
			"  agentsite add pump --driver relay --set pin=GPIO17 --set safe=off --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.refuseURL("add"); err != nil {
				return err
			}
			at, end, err := a.configured(cmd.Context(), file, root)
			if err != nil {
				return err
			}
			defer end()
			_, person := a.terminal()
			p := &addition{app: a, at: at, asks: person && !yes && !a.json}
			if len(args) > 0 {
				p.name = args[0]
			}
			if err := p.read(driver, set); err != nil {
				return err
			}
			return p.add(cmd.Context(), dry, yes, keep)
		},
	}
	cmd.Flags().StringVar(&driver, "driver", "", "the driver, or a name of the part (agentsite drivers lists them)")
	cmd.Flags().StringArrayVar(&set, "set", nil, "a key of the device, such as pin=GPIO17; may be repeated")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show the change and write nothing")
	cmd.Flags().BoolVar(&yes, "yes", false, "ask nothing")
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the part also where it does not answer")
	cmd.Flags().StringVar(&file, "config", "", "write this file as this user; a site that runs with it reloads")
	cmd.MarkFlagFilename("config", "yaml", "yml")
	cmd.Flags().StringVar(&root, "root", "", "")
	cmd.Flags().MarkHidden("root")
	var drivers completer = func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		return completeDrivers(cmd, nil, word) // whatever NAME is
	}
	cmd.RegisterFlagCompletionFunc("driver", drivers)
	cmd.RegisterFlagCompletionFunc("set", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return partKeys(driver), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
	return cmd
}

// partKeys completes the keys of a driver.
func partKeys(driver string) (keys []string) {
	all := site.AllDrivers()
	d, err := ops.DriverNamed(driver, all)
	if err != nil {
		return nil
	}
	page, err := ops.ReadDriver(d, all)
	if err != nil {
		return nil
	}
	for _, k := range slices.Concat(page.Keys, page.More) {
		if !strings.ContainsAny(k.Key, ".[") {
			keys = append(keys, cobra.CompletionWithDesc(k.Key+"=", k.Says))
		}
	}
	return keys
}

// read reads the arguments of the command.
func (p *addition) read(driver string, set []string) error {
	if p.name != "" {
		if err := device.CheckName(p.name); err != nil {
			return err
		}
	}
	partKey, partValue := "", ""
	if driver != "" {
		d, err := ops.DriverNamed(driver, site.AllDrivers())
		if err != nil {
			return usagef("--driver: %w", err)
		}
		p.put("driver", d.Name)
		partKey, partValue = d.PartKey, d.PartValue
	}
	for _, word := range set {
		key, value, ok := strings.Cut(word, "=")
		if !ok || value == "" {
			return usagef("--set takes a key and its value, such as pin=GPIO17, not %q", clean(word))
		}
		if slices.ContainsFunc(p.set, func(s config.Setting) bool { return s.Key == key }) {
			return usagef("%s is set twice; set it once", clean(key))
		}
		p.put(key, value)
	}
	if partKey != "" && p.value(partKey) == "" {
		p.put(partKey, partValue)
	}
	switch {
	case p.asks:
	case p.name == "":
		return usagef("NAME is missing: name the new device, such as pump")
	case p.value("driver") == "":
		return usagef("--driver is missing: agentsite drivers lists them")
	}
	return nil
}

// value returns the value of a key; "" where it is not set.
func (p *addition) value(key string) string {
	for _, s := range p.set {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// put sets a key.
func (p *addition) put(key, value string) {
	i := slices.IndexFunc(p.set, func(s config.Setting) bool { return s.Key == key })
	switch {
	case i >= 0 && value == "":
		p.set = slices.Delete(p.set, i, i+1)
	case i >= 0:
		p.set[i].Value = value
	case value != "" && key == "driver":
		p.set = slices.Insert(p.set, 0, config.Setting{Key: key, Value: value})
	case value != "":
		p.set = append(p.set, config.Setting{Key: key, Value: value})
	}
}

type addResult struct {
	Device   string   `json:"device"`
	File     string   `json:"file"`
	Change   []string `json:"change"` // lines that begin with +, - or a space
	Warnings []string `json:"warnings,omitzero"`
	Digest   string   `json:"digest,omitzero"` // of the new text; "" while it is not written
}

// add makes the new text, shows it and, unless dry is set, replaces the configuration with it.
func (p *addition) add(ctx context.Context, dry, yes, keep bool) error {
	now, err := p.at.read(ctx)
	if err != nil {
		return err
	}
	if p.name != "" { // before a person is asked for the rest
		if err := config.Free(now.File, []byte(now.Text), p.name); err != nil {
			return err
		}
	}
	if p.asks {
		if err := p.ask(ctx, now); err != nil {
			return err
		}
	}
	var text string
	var checked acts.Checked
	for again := false; ; again = true {
		if again {
			ask := func(ctx context.Context) error { return p.askKeys(ctx, true) }
			if !p.asksFor(checked.Mistakes) {
				ask = p.askOther
			}
			if err := ask(ctx); err != nil {
				return err
			}
		}
		edited, err := config.Edit(now.File, []byte(now.Text), p.name, p.set)
		if err != nil {
			return err
		}
		text = string(edited)
		if checked, err = p.at.check(ctx, text); err != nil {
			return err
		}
		if len(checked.Mistakes) == 0 {
			break
		}
		mend := "nothing is changed"
		if before, err := p.at.check(ctx, now.Text); err == nil && len(before.Mistakes) > 0 {
			checked, text, mend = before, now.Text, "mend the configuration first; nothing is changed"
		}
		p.showMistakes(now.File, text, checked.Mistakes)
		if !p.asks || text == now.Text {
			return usagef("%s", mend)
		}
	}
	out := addResult{Device: p.name, File: now.File, Change: changed(now.Text, text), Warnings: checked.Warnings}
	cfg, err := config.Parse(now.File, []byte(text), site.AllDrivers())
	if err == nil && p.at.root() != elsewhere {
		for _, f := range ops.PartFindings(ctx, cfg, p.name, p.at.root()) {
			out.Warnings = append(out.Warnings, strings.TrimSuffix(f.Subject+": "+f.Says+"; "+f.Do, "; "))
		}
	}
	for _, w := range out.Warnings {
		fmt.Fprintf(p.errs, "warning: %s\n", continued(w))
	}
	if !p.json {
		if err := p.show(out, cfg); err != nil {
			return err
		}
	}
	switch {
	case dry && p.json:
		return p.printJSON(out)
	case dry:
		return p.say("nothing is written, because of --dry-run")
	case !p.asks && !yes:
		return usagef("there is no terminal to confirm this on: use --yes, or --dry-run to look only")
	case p.asks:
		said, err := p.prompt(ctx, "Write this? [y/N] ", false)
		if err != nil {
			return fmt.Errorf("nothing is changed: %w", err)
		}
		if said := strings.ToLower(strings.TrimSpace(said)); said != "y" && said != "yes" {
			return usagef("nothing is changed")
		}
	}
	out.Digest, err = p.at.replace(ctx, now, acts.NewConfiguration{Text: text, Digest: now.Digest, Well: !keep})
	if err != nil {
		switch kind := kindOf(err); {
		case kind == device.Offline && !keep:
			p.note("--keep keeps a part that is not connected yet")
		case kind == device.Unavailable && p.at.root() != elsewhere:
			p.note("--config FILE writes the file as this user, and has the site reload")
		}
		return err
	}
	return p.print(out, "%s is added to %s%s", p.name, now.File, p.at.next())
}

// showMistakes prints mistakes at their lines, which are not in the file yet.
func (p *addition) showMistakes(file, text string, all []acts.Mistake) {
	lines := strings.Split(text, "\n")
	for _, m := range all {
		if m.Line < 1 || m.Line > len(lines) {
			fmt.Fprintf(p.errs, "%s: %s\n", clean(file), continued(m.Says))
			continue
		}
		fmt.Fprintf(p.errs, "%s:%d:%d: %s\n%5d | %s\n", clean(file), m.Line, m.Column, continued(m.Says), m.Line,
			clean(strings.TrimRight(lines[m.Line-1], "\r")))
	}
}

// show prints the pins of the new device, where a person looks, and the change. cfg is nil where this program
// cannot read the new text.
func (p *addition) show(out addResult, cfg *config.Site) error {
	if p.asks && cfg != nil {
		pins, there := ops.PinoutOf(cfg, p.at.root()), false
		for _, pos := range pins.Positions {
			for i, name := range pos.Devices {
				if name == out.Device {
					pos.Devices[i], there = "["+name+"]", true
				}
			}
		}
		if there {
			if err := p.showPinout(pins); err != nil {
				return err
			}
			p.say("")
		}
	}
	p.say("%s:", out.File)
	for _, line := range out.Change {
		sayAfter(p.out, line[:2], line[2:])
	}
	return p.out.err
}

// changed returns the lines that differ, with up to two before and after them: each after +, - or a space.
func changed(before, after string) (all []string) {
	split := func(text string) []string {
		lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
		if last := len(lines) - 1; lines[last] == "" {
			lines = lines[:last]
		}
		return lines
	}
	old, is := split(before), split(after)
	first := 0
	for first < min(len(old), len(is)) && old[first] == is[first] {
		first++
	}
	last := 0 // from the end
	for last < min(len(old), len(is))-first && old[len(old)-1-last] == is[len(is)-1-last] {
		last++
	}
	add := func(mark string, lines []string) {
		for _, l := range lines {
			all = append(all, mark+" "+l)
		}
	}
	const around = 2
	add(" ", is[max(0, first-around):first])
	add("-", old[first:len(old)-last])
	add("+", is[first:len(is)-last])
	add(" ", is[len(is)-last:min(len(is), len(is)-last+around)])
	return all
}
