package main

import (
	"context"
	"log/slog"
	"os/signal"
	"syscall"

	"agentsite/cmd/internal/site"
	"agentsite/node/config"

	"github.com/spf13/cobra"
)

func (a *app) runCommand() *cobra.Command {
	var file string
	var listen config.Listen
	var level slog.Level
	cmd := &cobra.Command{
		Use: "run", GroupID: groupSite, Args: noArgs,
		Short: "Run the site",
		Long: `Run the site of a configuration until Ctrl-C. The default configuration is agentsite.yaml
in this folder; without it, a simulated greenhouse and this machine's own sensors.

Outputs go to their safe values before the site accepts any call, and again when it ends.
"agentsite reload" reloads the configuration, and so does SIGHUP without a terminal.
SIGUSR1 is an emergency stop.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.requireLocal("run"); err != nil {
				return err
			}
			folder, err := a.folder()
			if err != nil {
				return err
			}
			stops := stopSignals()
			signal.Ignore(syscall.SIGPIPE) // a closed log must not end the process with outputs on
			defer logTo(a.errs, level)()
			logged := make(chan struct{})
			running := context.AfterFunc(cmd.Context(), func() {
				slog.Info("stopping; outputs go to their safe values (a second signal ends the process at once)")
				close(logged)
			})
			err = site.Run(cmd.Context(), site.Options{Config: file, Folder: folder, Listen: listen, Version: version, Hangup: hangups(), Stop: stops,
				OnStart: func(started site.Started) { printBanner(a.out, a.out.terminal(), folder, started) }})
			if !running() {
				<-logged
			}
			return err
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "the configuration (default: "+config.DefaultFile+", where there is one)")
	cmd.Flags().StringVar(&listen.HTTP, "listen", "", "the address for HTTP, such as 127.0.0.1:8473 (default: the configuration's)")
	cmd.Flags().StringVar(&listen.HTTPS, "listen-https", "", "the address for HTTPS, for the network, such as :8474, or none (default: the configuration's; with --listen none)")
	cmd.Flags().StringVar(&listen.Peers, "listen-peers", "", "the address for peers, such as :8475 (default: the configuration's under internet; with --listen none)")
	cmd.Flags().TextVar(&level, "log-level", slog.LevelInfo, "the minimum level of the log: debug, info, warn or error")
	cmd.MarkFlagFilename("config", "yaml", "yml")
	cmd.RegisterFlagCompletionFunc("log-level", cobra.FixedCompletions([]string{"debug", "info", "warn", "error"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) checkCommand() *cobra.Command {
	return &cobra.Command{
		Use: "check [FILE]", GroupID: groupSite,
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
			file := from + ":"
			if from == "" {
				file = "no " + config.DefaultFile + " here; the built-in demonstration is"
			}
			has := counted(len(cfg.Devices), "device")
			if len(cfg.Agents) > 0 {
				has += ", " + counted(len(cfg.Agents), "agent")
			}
			return a.print(checked(cfg, from), "%s ok: site %s, %s", file, cfg.Name, has)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
}

type checkResult struct {
	OK      bool            `json:"ok"`
	File    string          `json:"file,omitzero"`
	Site    string          `json:"site"`
	Devices []checkedDevice `json:"devices"`
	Agents  []checkedAgent  `json:"agents,omitzero"`
}

type checkedAgent struct {
	Agent string `json:"agent"`
	Kind  string `json:"kind"`
}

type checkedDevice struct {
	Device string `json:"device"`
	Driver string `json:"driver"`
}

func checked(cfg *config.Site, from string) checkResult {
	out := checkResult{OK: true, File: from, Site: cfg.Name, Devices: []checkedDevice{}}
	for _, d := range cfg.Devices {
		out.Devices = append(out.Devices, checkedDevice{d.Name, d.Driver})
	}
	for _, agent := range cfg.Agents {
		out.Agents = append(out.Agents, checkedAgent{agent.Name, agent.Kind})
	}
	return out
}

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use: "schema", GroupID: groupSite, Args: noArgs,
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
