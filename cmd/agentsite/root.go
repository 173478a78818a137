package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"agentsite/cmd/internal/peer"
	"agentsite/node/state"

	"github.com/spf13/cobra"
)

// app is one invocation: its streams and the flags that every command has.
type app struct {
	in   io.Reader
	out  *output
	errs io.Writer

	data, url, tokenFile, caCert string
	site, peer, as               string // a site that is known, or its key, and an agent of the user's that knows it
	key                          string // of the calls that move something; "" for one of each call's own
	cbor, json                   bool
	wait                         time.Duration // to reach a site that is elsewhere

	running string // the command's path, once its words were understood
}

// output is standard output. It remembers that something could not be written, for
// those who do not tell: a help text, say.
type output struct {
	io.Writer
	err error // the first one
}

func (o *output) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// terminal reports whether somebody looks at what is written.
func (o *output) terminal() bool {
	f, ok := o.Writer.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// execute runs one command line and returns its exit code.
func (a *app) execute(ctx context.Context, args []string) int {
	root := a.root()
	if len(args) > 0 && args[0] == "guard" { // whose process has to stay small: all commands are half a megabyte
		root.AddCommand(a.guardCommand())
	} else {
		a.addCommands(root)
	}
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	switch {
	case a.out.err != nil && (err == nil || errors.Is(err, a.out.err)):
		err = fmt.Errorf("not all of the output could be written: %w", a.out.err)
	case err == nil:
		return exitOK
	case a.running == "":
		err = usagef("%w; %s --help says more", err, cmd.CommandPath())
	}
	fmt.Fprintln(a.errs, explain(err, cmp.Or(a.site, a.peer)))
	return exitCode(err)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "agentsite",
		Short: "A board's sensors and outputs as tools for agents",
		Long: `agentsite runs a site: a board whose sensors and outputs are tools for agents.
The same program is the command line to a site that runs.

With no configuration, "agentsite run" simulates a greenhouse to try things with.`,
		SilenceErrors: true, SilenceUsage: true, DisableSuggestions: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			cmd.SuggestionsMinimumDistance = 2
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				return fmt.Errorf("there is no command %q; did you mean %s?", clean(args[0]), near[0])
			}
			return fmt.Errorf("there is no command %q", clean(args[0]))
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case a.url == "" && a.tokenFile != "":
				return fmt.Errorf("--token-file goes with --url")
			case a.url == "" && a.caCert != "":
				return fmt.Errorf("--cacert goes with --url")
			case a.url == "" && a.site == "" && a.cbor:
				return fmt.Errorf("--cbor goes with --url or --site")
			case a.wait < 0:
				return fmt.Errorf("--wait takes a time such as 30s, not %v", a.wait)
			case a.peer != "" && (a.site != "" || a.url != "" || a.data != ""):
				return fmt.Errorf("--peer says already which site it is: leave out --site, --url and --data")
			case a.as != "" && a.site == "" && a.peer == "" && !slices.Contains([]string{"connect", "sites", "forget", "ping"}, cmd.Name()):
				return fmt.Errorf("--as goes with --site or --peer")
			case a.site != "" && (a.url != "" || a.data != ""):
				return fmt.Errorf("--site says already which site it is: leave out --url and --data")
			}
			a.running = cmd.CommandPath()
			if a.peer == "" || cmd.Name() == "connect" {
				return nil
			}
			name, err := peer.ContactName(a.as, a.peer)
			if name != "" {
				a.site, a.peer = name, ""
			}
			return err
		},
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.errs)
	flags := root.PersistentFlags()
	flags.StringVar(&a.data, "data", "", "the site's data folder (default: "+defaultFolderHelp()+")")
	flags.StringVar(&a.site, "site", "", "speak to this site instead, which you claimed or were granted (agentsite sites lists them)")
	flags.StringVar(&a.peer, "peer", "", "the same, by its key: a peer ID or did:key, wherever it is")
	flags.StringVar(&a.as, "as", "", "with --site or --peer: as this one of your agents, not as yourself (agentsite agents lists them)")
	flags.DurationVar(&a.wait, "wait", 0, fmt.Sprintf("with --site or --peer, and for claim: how long to try to reach the site (default: once, for %v)", peer.DefaultTimeout))
	flags.StringVar(&a.url, "url", "", "speak to the site at this address instead, such as http://127.0.0.1:8473")
	flags.StringVar(&a.tokenFile, "token-file", "", "with --url: the file with the site's token (default: the one in the data folder)")
	flags.StringVar(&a.caCert, "cacert", "", "with --url https://…: the file with the site's certificate (agentsite identity --certificate prints it)")
	flags.BoolVar(&a.cbor, "cbor", false, "with --site or --url: speak CBOR instead of JSON")
	flags.BoolVar(&a.json, "json", false, "print results as JSON, one per line")
	flags.SortFlags = false
	root.RegisterFlagCompletionFunc("site", a.completeSites)
	root.RegisterFlagCompletionFunc("as", completeAgents)
	root.RegisterFlagCompletionFunc("peer", cobra.NoFileCompletions)
	root.RegisterFlagCompletionFunc("wait", cobra.NoFileCompletions)
	root.RegisterFlagCompletionFunc("url", cobra.NoFileCompletions)
	root.MarkPersistentFlagDirname("data")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })

	return root
}

// addCommands adds all that there are.
func (a *app) addCommands(root *cobra.Command) {
	root.AddGroup(
		&cobra.Group{ID: groupSite, Title: "A site:"},
		&cobra.Group{ID: groupBoard, Title: "Its board:"},
		&cobra.Group{ID: groupThings, Title: "Its sensors and outputs:"},
		&cobra.Group{ID: groupAgents, Title: "For agents:"},
	)
	root.AddCommand(
		a.runCommand(), a.identityCommand(), a.backupCommand(), a.restoreCommand(), a.checkCommand(), a.reloadCommand(), a.schemaCommand(), a.guardCommand(), a.safeCommand(), a.relayCommand(),
		a.scanCommand(), a.doctorCommand(), a.pinoutCommand(), a.prepareCommand(), a.consoleCommand(),
		a.pointsCommand(), a.readCommand(), a.historyCommand(), a.setCommand(), a.stopCommand(), a.resetCommand(),
		a.approveCommand(), a.journalCommand(),
		a.toolsCommand(), a.callCommand(), a.connectCommand(),
		a.claimCommand(), a.acceptCommand(), a.discoverCommand(), a.findCommand(), a.pingCommand(), a.realmCommand(), a.sitesCommand(), a.agentsCommand(), a.grantCommand(), a.delegateCommand(),
		a.tokenCommand(), a.grantsCommand(), a.revokeCommand(), a.ownersCommand(), a.clockCommand(),
		a.updateCommand(), a.versionCommand(),
	)
	root.AddCommand(extraCommands()...)
	root.SetHelpCommand(helpCommand())
	root.InitDefaultCompletionCmd()
	strictCompletion(root)
}

// helpCommand replaces cobra's own, which takes any word for a topic.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Help about a command",
		Args: func(cmd *cobra.Command, words []string) error {
			_, left, err := cmd.Root().Find(words)
			if err == nil && len(left) > 0 {
				err = fmt.Errorf("there is no command %q", clean(left[0]))
			}
			return err
		},
		RunE: func(cmd *cobra.Command, words []string) error {
			about, _, err := cmd.Root().Find(words)
			if err != nil {
				return err
			}
			return about.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, words []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			if len(words) == 0 {
				for _, c := range cmd.Root().Commands() {
					if c.IsAvailableCommand() {
						names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// strictCompletion has cobra's command refuse a shell that it does not know.
func strictCompletion(root *cobra.Command) {
	cmd, _, err := root.Find([]string{"completion"})
	if err != nil {
		return
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.Args = func(_ *cobra.Command, words []string) error {
		if len(words) > 0 {
			return fmt.Errorf("there are no completions for %q", clean(words[0]))
		}
		return nil
	}
}

const (
	groupSite   = "site"
	groupBoard  = "board"
	groupThings = "things"
	groupAgents = "agents"
)

func defaultFolderHelp() string {
	f, err := state.DefaultFolder()
	if err != nil {
		return "none here"
	}
	return string(f) + "; for what speaks to a site, " + string(state.ServiceFolder) + " while none runs from there"
}

// folder is the data folder as an absolute path: the site remembers things by it.
func (a *app) folder() (state.Folder, error) {
	if a.data == "" {
		return state.DefaultFolder()
	}
	dir, err := filepath.Abs(a.data)
	return state.Folder(dir), err
}

// siteFolder is the data folder of the site on this machine that a command is about which
// starts none.
func (a *app) siteFolder() (state.Folder, error) {
	if a.data == "" {
		return state.FindFolder()
	}
	return a.folder()
}

// local refuses --url and --site for what only the site's own machine can do.
func (a *app) local(what string) error {
	if a.url != "" || a.site != "" || a.peer != "" {
		return usagef("%s works on the site's own machine only: leave out --url, --site and --peer", what)
	}
	return nil
}

// owners refuses --url, where no key proves who asks, for what only owners can do.
func (a *app) owners(what string) error {
	if a.url != "" {
		return usagef("%s is an owner's: run it on the site's own machine, or with --site", what)
	}
	return nil
}

// noArgs and exactly replace cobra's own, whose sentences name no remedy.
func noArgs(cmd *cobra.Command, args []string) error { return exactly()(cmd, args) }

func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return fmt.Errorf("%s is missing", names[len(args)])
		case len(args) > len(names):
			return fmt.Errorf("%q is one word too many", clean(args[len(names)]))
		}
		return nil
	}
}
