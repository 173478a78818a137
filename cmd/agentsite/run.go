package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"agentsite/cmd/internal/ops"
	"agentsite/cmd/internal/site"
	"agentsite/node/config"
	"agentsite/node/logs"
	"agentsite/node/state"

	"github.com/spf13/cobra"
)

func (a *app) runCommand() *cobra.Command {
	var file, programs string
	var listen config.Listen
	var level slog.Level
	var home homeAssistantFlags
	cmd := &cobra.Command{
		Use: "run", GroupID: groupEveryday, Args: noArgs,
		Short: "Run the site",
		Long: `Run the site of a configuration until Ctrl-C. The default configuration is agentsite.yaml
in this folder; without it, that of agentsite demo.

Outputs go to their safe values before the site accepts any call, and again when it ends.
"agentsite reload" reloads the configuration, and so does SIGHUP without a terminal.
SIGUSR1 is an emergency stop.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.requireLocal("run"); err != nil {
				return err
			}
			if home.on {
				return a.runApp(cmd, home, file, listen)
			}
			folder, err := a.folder()
			if err != nil {
				return err
			}
			o := site.Options{Config: file, Folder: folder, Listen: listen}
			o.Update.Folder = programs
			return a.runSite(cmd.Context(), o, level)
		},
	}
	cmd.Flags().StringVar(&programs, "update-folder", "", "")
	cmd.Flags().MarkHidden("update-folder") // for tests
	cmd.Flags().StringVar(&file, "config", "", "the configuration (default: "+config.DefaultFile+", where there is one)")
	cmd.Flags().StringVar(&listen.HTTP, "listen", "", "the address for HTTP, such as 127.0.0.1:8473 (default: the configuration's)")
	cmd.Flags().StringVar(&listen.HTTPS, "listen-https", "", "the address for HTTPS, for the network, such as :8474, or none (default: the configuration's; with --listen none)")
	cmd.Flags().StringVar(&listen.Peers, "listen-peers", "", "the address for peers, such as :8475 (default: the configuration's under internet; with --listen none)")
	home.add(cmd)
	levelFlag(cmd, &level)
	cmd.MarkFlagFilename("config", "yaml", "yml")
	return cmd
}

func (a *app) demoCommand() *cobra.Command {
	var listen config.Listen
	var level slog.Level
	cmd := &cobra.Command{
		Use: "demo", GroupID: groupEveryday, Args: noArgs,
		Short: "Run a simulated greenhouse, to try things out",
		Long: `Run a simulated greenhouse until Ctrl-C, with this machine's own sensors, a rule that keeps the
frost out, and a stand-in for a language model, which is a script and says so. Nobody else reaches
it. What it stores is removed at its end, unless --data says where it is kept.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.requireLocal("demo"); err != nil {
				return err
			}
			folder, remove, err := a.folderOr(state.NewDemo)
			if err != nil {
				return err
			}
			defer remove()
			return a.runSite(cmd.Context(), site.Options{Demo: true, Folder: folder, Listen: listen}, level)
		},
	}
	cmd.Flags().StringVar(&listen.HTTP, "listen", "127.0.0.1:0", "the address for HTTP")
	levelFlag(cmd, &level)
	return cmd
}

// folderOr returns the data folder of --data or, without it, one that create makes and remove removes.
func (a *app) folderOr(create func() (state.Folder, error)) (f state.Folder, remove func(), err error) {
	remove = func() {}
	if a.data == "" {
		f, err := create()
		if err != nil {
			return "", nil, err
		}
		a.data, remove = string(f), func() { os.RemoveAll(string(f)) }
	}
	f, err = a.folder()
	return f, remove, err
}

// runSite runs a site until ctx ends, and says at the terminal how to use it.
func (a *app) runSite(ctx context.Context, o site.Options, level slog.Level) error {
	o.Version, o.Hangup, o.Stop = version, hangups(), stopSignals()
	var err error
	if o.Update.Release, err = ops.NewRelease(version, sequence, releaseKeys); err != nil {
		return err
	}
	o.Update.Release.Base = releases
	then := o.OnStart
	o.OnStart = func(started site.Started) {
		if started.File == "" && !o.Demo {
			a.note("no %s here: this is agentsite demo, kept in %s", config.DefaultFile, o.Folder)
		}
		printBanner(a.out, a.out.terminal(), o.Folder, started)
		if then != nil {
			then(started)
		}
	}
	signal.Ignore(syscall.SIGPIPE) // a closed log must not end the process with outputs on
	o.Log = logs.NewRing()
	defer logTo(a.errs, level, o.Log.Handler(level))()
	logged := make(chan struct{})
	running := context.AfterFunc(ctx, func() {
		slog.Info("stopping; outputs go to their safe values (a second signal ends the process at once)")
		close(logged)
	})
	err = site.Run(ctx, o)
	if !running() {
		<-logged
	}
	return err
}

func levelFlag(cmd *cobra.Command, level *slog.Level) {
	cmd.Flags().TextVar(level, "log-level", slog.LevelInfo, "the minimum level of the log: debug, info, warn or error")
	cmd.RegisterFlagCompletionFunc("log-level", completeLevels)
}

// completeLevels completes the levels of the log.
var completeLevels = cobra.FixedCompletions(
	[]string{"debug", "info", "warn", "error"}, cobra.ShellCompDirectiveNoFileComp,
)

func (a *app) checkCommand() *cobra.Command {
	return &cobra.Command{
		Use: "check [FILE]", GroupID: groupBoard,
		Short: "Check a configuration without touching hardware",
		Args:  optional("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			path := ""
			if len(args) == 1 {
				path = args[0]
			}
			cfg, from, err := site.CheckBoard(path)
			if err != nil {
				return err
			}
			for _, remark := range ops.OffHeader(cfg) {
				a.note("%s", remark)
			}
			file := from + ":"
			if from == "" {
				file = "no " + config.DefaultFile + " here; the built-in demonstration is"
			}
			has := counted(len(cfg.Devices), "device")
			if len(cfg.Agents) > 0 {
				has += ", " + counted(len(cfg.Agents), "agent")
			}
			if n := site.OwnSkills(from); n > 0 && from != "" {
				has += ", " + counted(n, "skill")
			}
			doubts := site.Doubts(cfg, from)
			for _, doubt := range doubts {
				a.remark("warning: " + doubt.Error())
			}
			return a.print(checked(cfg, from, doubts), "%s ok: site %s, %s", file, cfg.Name, has)
		},
		ValidArgsFunction: completeYAML,
	}
}

type checkResult struct {
	OK      bool            `json:"ok"`
	File    string          `json:"file,omitzero"`
	Site    string          `json:"site"`
	Devices []checkedDevice `json:"devices"`
	Agents  []checkedAgent  `json:"agents,omitzero"`
	Doubts  []string        `json:"warnings,omitzero"`
}

type checkedAgent struct {
	Agent string `json:"agent"`
	Kind  string `json:"kind"`
}

type checkedDevice struct {
	Device string `json:"device"`
	Driver string `json:"driver"`
}

func checked(cfg *config.Site, from string, doubts []error) checkResult {
	out := checkResult{OK: true, File: from, Site: cfg.Name, Devices: []checkedDevice{}}
	for _, d := range cfg.Devices {
		out.Devices = append(out.Devices, checkedDevice{d.Name, d.Driver})
	}
	for _, agent := range cfg.Agents {
		out.Agents = append(out.Agents, checkedAgent{agent.Name, agent.Kind})
	}
	for _, doubt := range doubts {
		out.Doubts = append(out.Doubts, doubt.Error())
	}
	return out
}

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use: "schema", GroupID: groupBoard, Args: noArgs,
		Short: "Print the JSON Schema of " + config.DefaultFile + ", for editors",
		RunE: func(*cobra.Command, []string) error {
			text, err := site.Schema()
			if err != nil {
				return err
			}
			_, err = a.out.Write(text)
			return err
		},
	}
}
