package main

import (
	"context"
	"fmt"
	"log/slog"
	"os/signal"
	"syscall"

	"agentsite/cmd/internal/site"
	"agentsite/node/config"

	"github.com/spf13/cobra"
)

func (a *app) runCommand() *cobra.Command {
	var file, listen, https, peers string
	var level slog.Level
	cmd := &cobra.Command{
		Use: "run", GroupID: groupSite, Args: noArgs,
		Short: "Run the site",
		Long: `Run the site that a configuration describes, until Ctrl-C. Without --config it is
agentsite.yaml in this folder, and without that file a simulated greenhouse and
this machine's own sensors.

Outputs go to their safe values before anybody is heard, and again at the end.
"agentsite reload" has it read the configuration again; so has SIGHUP, where there
is no terminal whose end it could mean. SIGUSR1 is an emergency stop.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.local("run"); err != nil {
				return err
			}
			folder, err := a.folder()
			if err != nil {
				return err
			}
			stops := stopSignals()
			signal.Ignore(syscall.SIGPIPE) // a log that nobody reads any more must not end this with outputs on
			defer logTo(a.errs, level)()
			said := make(chan struct{})
			running := context.AfterFunc(cmd.Context(), func() {
				slog.Info("stopping: outputs go to their safe values; a second signal would end this at once, without that")
				close(said)
			})
			err = site.Run(cmd.Context(), site.Options{Config: file, Folder: folder, Listen: listen, ListenHTTPS: https, ListenPeers: peers, Version: version, Out: a.out, Terminal: a.out.terminal(), Hangup: hangups(), Stop: stops})
			if !running() {
				<-said
			}
			return err
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&file, "config", "", "the configuration (default: "+config.DefaultFile+", where there is one)")
	cmd.Flags().StringVar(&listen, "listen", "", "where HTTP listens, instead of the configuration's listen: such as 127.0.0.1:8473")
	cmd.Flags().StringVar(&https, "listen-https", "", "where HTTPS listens, for the network, instead of the configuration's: such as :8474, or none; with --listen none is usual")
	cmd.Flags().StringVar(&peers, "listen-peers", "", "where peers are listened for, instead of the configuration's under internet: such as :8475; with --listen nowhere is usual")
	cmd.Flags().TextVar(&level, "log-level", slog.LevelInfo, "what is logged: debug, info, warn or error")
	cmd.MarkFlagFilename("config", "yaml", "yml")
	cmd.RegisterFlagCompletionFunc("listen", cobra.NoFileCompletions)
	cmd.RegisterFlagCompletionFunc("listen-https", cobra.NoFileCompletions)
	cmd.RegisterFlagCompletionFunc("listen-peers", cobra.NoFileCompletions)
	cmd.RegisterFlagCompletionFunc("log-level", cobra.FixedCompletions([]string{"debug", "info", "warn", "error"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) checkCommand() *cobra.Command {
	return &cobra.Command{
		Use: "check [FILE]", GroupID: groupSite,
		Short: "Check a configuration without touching hardware",
		Args: func(cmd *cobra.Command, args []string) error {
			return exactly([]string{"FILE"}[:min(len(args), 1)]...)(cmd, args)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			path := ""
			if len(args) == 1 {
				path = args[0]
			}
			cfg, from, err := site.CheckBoard(path)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(checked(cfg, from))
			}
			if from == "" {
				from = "no " + config.DefaultFile + " here, the built-in demonstration is"
			} else {
				from += ":"
			}
			return a.say("%s ok: site %s, %s", from, cfg.Name, counted(len(cfg.Devices), "device"))
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
	return out
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
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
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}
