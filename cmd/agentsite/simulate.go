package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/cmd/internal/recording"
	"agentsite/cmd/internal/site"
	"agentsite/device"
	"agentsite/node/config"
	"agentsite/node/state"

	"github.com/spf13/cobra"
)

func (a *app) simulateCommand() *cobra.Command {
	var listen config.Listen
	var level slog.Level
	var readings string
	cmd := &cobra.Command{
		Use: "simulate [FILE]", GroupID: groupBoard, Args: optional("FILE"),
		Short: "Run a configuration with simulated devices",
		Long: `Run the site of a configuration (default: agentsite.yaml) until Ctrl-C, with a simulated device
in place of each. Rules, limits and permissions are those of the file, and the outputs are
driven by a process of their own, as on the board; but nothing real moves, and no other machine
is reached. Each move is printed. "agentsite sim set" sets what a sensor reads.

What it stores is removed at its end, unless --data says where it is kept.`,
		Example: "  agentsite simulate\n  agentsite simulate greenhouse.yaml --readings day.csv",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.requireLocal("simulate"); err != nil {
				return err
			}
			file := ""
			if len(args) == 1 {
				file = args[0]
			}
			return a.simulate(cmd.Context(), file, readings, listen, level)
		},
		ValidArgsFunction: completeYAML,
	}
	cmd.Flags().StringVar(&listen.HTTP, "listen", "127.0.0.1:0", "the address for HTTP")
	cmd.Flags().StringVar(&readings, "readings", "",
		"replay the readings of this CSV file, as for rules try: the first one at the start, and the others as long after "+
			"it as in the file")
	levelFlag(cmd, &level)
	cmd.MarkFlagFilename("readings", "csv")
	return cmd
}

// simulate runs a simulation of a configuration that is free of mistakes.
func (a *app) simulate(ctx context.Context, file, readings string, listen config.Listen, level slog.Level) error {
	cfg, from, err := site.CheckFile(file)
	if err != nil {
		return err
	}
	if from == "" {
		return usagef("there is no %s here: name a configuration, or run agentsite demo", config.DefaultFile)
	}
	for _, doubt := range site.Doubts(cfg, from) {
		a.remark("warning: " + doubt.Error())
	}
	fakes, err := site.LoadSimulated(from)
	if err != nil {
		return err
	}
	for _, says := range site.Differences(cfg, fakes) {
		a.note("%s", says)
	}
	var past *recording.Recording
	if readings != "" {
		if past, err = readRecording(readings, fakes, time.Local); err != nil {
			return err
		}
	}
	folder, remove, err := a.folderOr(state.NewSimulation)
	if err != nil {
		return err
	}
	defer remove()
	ctx, cancel := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer cancel()
	var failed error // the first one
	var fail sync.Once
	ended := func(err error) {
		if err != nil && ctx.Err() == nil {
			fail.Do(func() { failed = err })
			cancel()
		}
	}
	run := func(do func(context.Context, *session) error) {
		s, err := a.dial()
		if err != nil {
			ended(err)
			return
		}
		beside.Go(func() {
			defer s.Close()
			ended(do(ctx, s))
		})
	}
	err = a.runSite(ctx, site.Options{
		Config: from, Simulate: true, Folder: folder, Listen: listen,
		OnStart: func(site.Started) {
			run(a.printMoves)
			if past != nil {
				run(func(ctx context.Context, s *session) error { return s.replay(ctx, past) })
			}
		},
	}, level)
	cancel()
	beside.Wait()
	if err == nil {
		err = failed
	}
	return err
}

// printMoves prints a line for each change of an output, until ctx ends.
func (a *app) printMoves(ctx context.Context, s *session) error {
	list, err := s.listPoints(ctx)
	if err != nil {
		return err
	}
	p := movePrinter{app: a, last: make(map[string]move)}
	var outputs []string
	for _, o := range list {
		if o.output() {
			outputs = append(outputs, o.Point)
			p.width = max(p.width, textWidth(clean(o.Point)))
		}
	}
	if outputs == nil {
		a.note("no output is configured: agentsite read --watch --data %s shows what is measured", state.ShellQuote(a.data))
		return nil
	}
	err = s.Watch(ctx, agents.Principal{}, agents.WatchRequest{Points: outputs}, p.print)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// move is the printed state of an output.
type move struct {
	value device.Value
	who   string // its holder, or why it returned or is not known
}

// movePrinter prints the moves of outputs.
type movePrinter struct {
	app   *app
	width int // of the longest output
	last  map[string]move
}

func (p *movePrinter) print(u agents.Update) error {
	for _, r := range u.Readings {
		now := move{value: r.Value, who: r.Why}
		if d := r.Detail; d != nil && r.Quality == device.Good {
			if now.who = d.Why; d.Holder != "" {
				now.who = called(d.Holder)
			}
		}
		last, printed := p.last[r.Point]
		if !printed && r.Quality == device.Stale && r.Value.IsZero() {
			continue // its first reading comes
		}
		p.last[r.Point] = now
		atStart := !printed && r.Quality == device.Good && (r.Detail == nil || r.Detail.Holder == "")
		if atStart || last == now {
			continue // nobody has moved it yet
		}
		if p.app.json {
			if err := p.app.printJSON(dated(r)); err != nil {
				return err
			}
			continue
		}
		who := ""
		if now.who != "" {
			who = fmt.Sprintf("(%s)", clean(now.who))
		}
		err := tableRow(p.app.out, []string{"TIME", "OUTPUT", "VALUE", "WHO"},
			time.Now().Format(time.TimeOnly), pad(clean(r.Point), p.width), show(r.Value, r.Unit), who)
		if err != nil {
			return err
		}
	}
	return nil
}
