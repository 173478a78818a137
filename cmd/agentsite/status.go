package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/cmd/internal/ops"
	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/node/hosted"

	"github.com/spf13/cobra"
)

// statusResult is the JSON output of the command status.
type statusResult struct {
	Answers bool            `json:"answers"`        // the site reports its state
	Site    *ops.SiteStatus `json:"site,omitzero"`  // absent where it does not
	Local   *ops.LocalSite  `json:"local,omitzero"` // of a site on this machine
	Error   string          `json:"error,omitzero"`
}

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use: "status", GroupID: groupEveryday, Args: noArgs,
		Short: "Show how the site is, what is on, and what is wrong",
		Long: `Show the state of the site: outputs away from their safe values, hosted agents, what waits for
an owner, what is wrong with a remedy, and where its data is. Who is no owner sees what the
permission covers.

The exit code is 0 if nothing is wrong, 1 if there is a problem (warnings are none, as for
"agentsite doctor"), and 6 if the site does not answer. It looks at the site only;
"agentsite doctor" examines the board, too.`,
		Example: "  agentsite status\n  agentsite status --site shed\n  agentsite status --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.refuseURL("status"); err != nil {
				return err
			}
			var out statusResult
			s, err := a.dial()
			if err == nil {
				defer s.Close()
				now, asked := ops.ReadStatus(cmd.Context(), &ops.RunningSite{Owner: s.Owner, Site: s.Client, Closer: s})
				if err = a.unreached(asked); errors.Is(asked, context.DeadlineExceeded) {
					err = coded{exitAway, errors.New(hangs)}
				}
				if now.Site != "" { // with an error, it answered in part
					out.Site = &now
				}
			}
			if a.site == "" && a.peer == "" {
				if folder, err := a.siteFolder(); err == nil {
					local := ops.ReadLocalSite(cmd.Context(), folder)
					out.Local = &local
				}
			}
			if err != nil {
				out.Error = plain(err)
				if !errors.As(err, new(coded)) {
					err = coded{exitAway, err}
				}
			}
			out.Answers = err == nil
			if a.json {
				err = cmp.Or(a.printJSON(out), err)
			} else {
				a.printStatus(cmd.Context(), s, out)
			}
			if err != nil || out.Site == nil {
				return err
			}
			if n := problems(*out.Site); n > 0 {
				return coded{exitFailure, fmt.Errorf("%s found", counted(n, "problem"))}
			}
			return nil
		},
	}
}

// hangs is told of a site that a connection was made to.
const hangs = "the site takes the connection and does not answer: it hangs, or its machine is busy"

// problems counts the findings of a site that are problems.
func problems(s ops.SiteStatus) (n int) {
	for _, f := range s.Wrong {
		if f.Severity == driver.Problem {
			n++
		}
	}
	return n
}

// printStatus prints a status for people; s is nil where the site does not answer.
func (a *app) printStatus(ctx context.Context, s *session, out statusResult) {
	if out.Site != nil {
		a.printSite(*out.Site)
		a.printOutputs(*out.Site, s.units(ctx, out.Site.Moved))
		a.printHostedStatus(out.Site.Agents)
		a.printWaiting(*out.Site)
		a.printWrong(out.Site.Wrong)
	}
	if out.Local != nil {
		a.printLocal(*out.Local, out.Site)
	} else if out.Site != nil && out.Site.Configuration != "" {
		a.sayOthers("configuration: %s, on the site's machine", out.Site.Configuration)
	}
}

// printSite prints the lines about the site as a whole.
func (a *app) printSite(s ops.SiteStatus) {
	about := fmt.Sprintf("%s is running: version %s, up %s", s.Site, s.Version, span(math.Floor(s.Uptime)))
	if s.Simulated {
		about += ", simulated"
	}
	a.sayOthers("%s", about)
	if !s.Owned {
		a.say("you are no owner: this is what your permission shows")
		return
	}
	switch s.Owners {
	case 0:
		a.say("no owner yet: until someone claims it, anyone with access to its machine controls it")
	default:
		a.sayOthers("owned by %s, its key is %s", counted(s.Owners, "key"), s.Key)
	}
	if len(s.Addresses) > 0 {
		a.sayOthers("listens at %s", strings.Join(s.Addresses, ", "))
	}
}

// printOutputs prints the stop, and the outputs that are away from safe or blocked.
func (a *app) printOutputs(s ops.SiteStatus, units map[string]string) {
	if s.Stopped {
		a.sayIn(styleWrong, "EMERGENCY STOP: no output moves")
	}
	if len(s.Moved) == 0 {
		a.say("all outputs are at their safe values")
	} else {
		var rows [][]string
		for _, o := range s.Moved {
			until := "no limit"
			if o.Left > 0 {
				until = "in " + span(o.Left)
			}
			rows = append(rows, []string{o.Output, show(o.Value, units[o.Output]), until, called(o.Holder), o.Fault})
		}
		a.say("")
		painted(a.out, []string{"AWAY FROM SAFE", "VALUE", "RETURNS", "HELD BY", "FAULT"}, rows, func(_, column int) style {
			return []style{styleStrong, styleStrong, "", "", styleWrong}[column]
		})
	}
	if len(s.Blocked) == 0 {
		return
	}
	var rows [][]string
	for _, o := range s.Blocked {
		rows = append(rows, []string{o.Output, blocked(o)})
	}
	a.say("")
	painted(a.out, []string{"BLOCKED", "WHY"}, rows, func(int, int) style { return styleWarning })
}

// blocked returns why an output at safe cannot be moved.
func blocked(o agents.OutputStatus) string {
	var why []string
	if o.Rest > 0 {
		why = append(why, "it rests for "+span(o.Rest))
	}
	if o.Needs != "" {
		why = append(why, o.Needs)
	}
	if o.Latched {
		why = append(why, "it waits for agentsite reset")
	}
	if o.Effect != "" {
		why = append(why, "effect "+o.Effect)
	}
	return strings.Join(append(why, cmp.Or(o.Fault, o.Why)), "; ")
}

// units returns the units of outputs that are moved to numbers; none where the site does not tell.
func (s *session) units(ctx context.Context, moved []agents.OutputStatus) map[string]string {
	isNumber := func(o agents.OutputStatus) bool { return o.Value.Type() == device.TypeNumber }
	if !slices.ContainsFunc(moved, isNumber) {
		return nil
	}
	list, _ := s.listPoints(ctx)
	units := make(map[string]string)
	for _, p := range list {
		units[p.Point] = p.Unit
	}
	return units
}

// printHostedStatus prints how many agents there are, and those that do not work.
func (a *app) printHostedStatus(all []hosted.Agent) {
	if len(all) == 0 {
		return
	}
	counts := make(map[agent.State]int)
	var rows [][]string
	var states []style
	for _, h := range all {
		counts[h.State]++
		if s := stateStyle(h.State); s != "" {
			rows, states = append(rows, []string{h.Name, string(h.State), h.Says}), append(states, s)
		}
	}
	var parts []string
	for _, state := range []agent.State{
		agent.Running, agent.Holding, agent.Waiting, agent.Yielding, agent.Idle, agent.Paused, agent.Draft, agent.Failed,
	} {
		if n := counts[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, stateWords[state]))
		}
	}
	a.say("")
	a.say("%s: %s", counted(len(all), "agent"), strings.Join(parts, ", "))
	if len(rows) > 0 {
		painted(a.out, []string{"AGENT", "STATE", "WHY"}, rows, func(row, column int) style {
			if column == 1 {
				return states[row]
			}
			return ""
		})
	}
}

// stateWords has the words for agents in a state, after their number.
var stateWords = map[agent.State]string{
	agent.Running: "running", agent.Holding: "holding outputs", agent.Waiting: "waiting", agent.Yielding: "yielding",
	agent.Idle: "idle", agent.Paused: "paused", agent.Draft: "waiting for your acceptance", agent.Failed: "failed",
}

// stateStyle returns the style of an agent's state, "" for a state without a fault.
func stateStyle(s agent.State) style {
	switch s {
	case agent.Failed:
		return styleWrong
	case agent.Paused, agent.Draft:
		return styleWarning
	}
	return ""
}

// printWaiting prints what waits for an owner.
func (a *app) printWaiting(s ops.SiteStatus) {
	n := len(s.Waiting) + len(s.SignIns) + len(s.Wishes)
	if n == 0 {
		return
	}
	var rows [][]string
	for _, r := range s.Waiting {
		rows = append(rows, []string{askerOf(r), r.Tool + " " + argumentsOf(r), span(r.Left)})
	}
	for _, in := range s.SignIns {
		rows = append(rows, []string{in.Client, "sign in", span(in.Left)})
	}
	for _, w := range s.Wishes {
		rows = append(rows, []string{w.Client, w.Tool, span(w.Left)})
	}
	a.say("")
	painted(a.out, []string{"WAITS FOR YOU", "ASKS FOR", "STILL"}, rows, func(int, int) style { return styleWarning })
	a.say("  %s approve", a.again())
}

// printWrong prints findings, each with its remedy.
func (a *app) printWrong(all []driver.Finding) {
	if len(all) > 0 {
		a.say("")
	}
	for _, f := range all {
		f.Do = a.addressed(f.Do)
		a.printFinding(f)
	}
}

// printFinding prints a finding, and its remedy below it.
func (a *app) printFinding(f driver.Finding) {
	severity := string(f.Severity) + ":"
	for line := range strings.SplitSeq(f.Subject+": "+f.Says, "\n") {
		painted := a.out.paint(severityStyle(f.Severity), severity)
		fmt.Fprintln(a.out, painted+withBreaks(" "+clean(line), cellsOf(severity), lineWidth(a.out)))
	}
	for _, line := range fill(unbroken(clean(f.Do)), cmp.Or(lineWidth(a.out), math.MaxInt)-4) {
		fmt.Fprintln(a.out, "    "+line)
	}
}

// addressed returns a remedy whose commands of this program address the site of the flags.
func (a *app) addressed(remedy string) string {
	words := strings.Split(remedy, " ")
	for i, word := range words[:len(words)-1] {
		isUnit := i > 0 && (words[i-1] == "-u" || strings.HasSuffix(words[i-1], "start"))
		if word == "agentsite" && !isUnit {
			words[i] = a.again()
		}
	}
	return strings.Join(words, " ")
}

// severityStyle returns the style of a finding's severity.
func severityStyle(s driver.Severity) style {
	switch s {
	case driver.Problem:
		return styleWrong
	case driver.Warning:
		return styleWarning
	}
	return styleDim
}

// printLocal prints where the site's files are on this machine, and the state of its service. site is nil where it
// does not answer.
func (a *app) printLocal(l ops.LocalSite, site *ops.SiteStatus) {
	if site != nil {
		a.say("")
	}
	if l.Service != "" {
		a.say("service: %s", l.Service)
	}
	if site != nil && site.Configuration != "" {
		a.say("configuration: %s", site.Configuration)
	} else if site == nil && l.Configuration != "" {
		a.say("configuration: %s", l.Configuration)
	}
	a.say("data: %s", l.Folder)
	if l.Update {
		a.sayIn(styleWarning, "an update is ready: sudo systemctl restart agentsite installs it")
	}
	if site == nil && l.Service != "" {
		a.say("log: %s logs", a.again())
	}
}
