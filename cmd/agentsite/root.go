package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"agentsite/cmd/internal/peer"
	"agentsite/node/state"

	"github.com/spf13/cobra"
)

// app is one invocation: its streams and the flags of all commands.
type app struct {
	in   io.Reader
	out  *output
	errs io.Writer

	data, url, tokenFile, caCert string
	site, peer, as               string // a contact's name, or a site's key, and the user's agent that calls
	key                          string // the idempotency key of moves; "" for a new one for each call
	cbor, json                   bool
	wait                         time.Duration // how long to try to connect

	running string // the command's path, once its arguments were parsed
}

// output is standard output. It stores the first write error, because some callers, such as a
// help text, ignore it.
type output struct {
	io.Writer
	err   error                        // the first one
	shows atomic.Pointer[progressLine] // the line that is on the terminal meanwhile; nil for none
}

func (o *output) Write(b []byte) (int, error) {
	var n int
	var err error
	o.above(func() { n, err = o.Writer.Write(b) })
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// above runs write, which prints lines, above the line of a progress.
func (o *output) above(write func()) {
	if p := o.shows.Load(); p != nil {
		p.hold(write)
		return
	}
	write()
}

// terminal reports whether the output is a terminal.
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
	if len(args) > 0 && args[0] == "guard" { // its process must stay small: the other commands take half a megabyte
		root.AddCommand(a.guardCommand())
	} else {
		a.addCommands(root)
	}
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	switch {
	case a.out.err != nil && (err == nil || errors.Is(err, a.out.err)):
		err = fmt.Errorf("the output could not be written completely: %w", a.out.err)
	case err == nil:
		return exitOK
	case a.running == "":
		err = usagef("%w; see %s --help", err, cmd.CommandPath())
	}
	a.complain(err)
	return exitCode(err)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "agentsite",
		Short: "A board's sensors and outputs as tools for agents",
		Long: `agentsite runs a site: a board whose sensors and outputs are tools for agents. It is also
the command line for running sites.

"agentsite demo" simulates a greenhouse, to try things out.`,
		SilenceErrors: true, SilenceUsage: true, DisableSuggestions: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return fmt.Errorf("there is no command %q%s", clean(args[0]), suggestCommand(cmd, args[0]))
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if shows, _ := cmd.Flags().GetBool("version"); shows {
				return a.printVersion()
			}
			return cmd.Help()
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case a.url == "" && a.tokenFile != "":
				return errors.New("--token-file needs --url")
			case a.url == "" && a.caCert != "":
				return errors.New("--cacert needs --url")
			case a.url == "" && a.site == "" && a.cbor:
				return errors.New("--cbor needs --url or --site")
			case a.wait < 0:
				return fmt.Errorf("--wait takes a time such as 30s, not %v", a.wait)
			case a.peer != "" && (a.site != "" || a.url != "" || a.data != ""):
				return errors.New("--peer names the site: leave out --site, --url and --data")
			case a.as != "" && a.site == "" && a.peer == "" && !slices.Contains([]string{"connect", "sites", "forget", "ping"}, cmd.Name()) && !slices.Contains([]string{"agents find", "agents show"}, words(cmd)):
				names := a.knownSites()
				if a.site = os.Getenv(siteVariable); a.site == "" && len(names) == 1 {
					a.site = names[0]
				}
				if a.site == "" || a.url != "" || a.data != "" {
					return errors.New("--as needs --site or --peer")
				}
			case a.site != "" && (a.url != "" || a.data != ""):
				return errors.New("--site names the site: leave out --url and --data")
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
	flags.StringVar(&a.site, "site", "", "use this site, by its name in agentsite sites (default: "+siteVariable+" or, on a machine without a site, the only one there)")
	flags.StringVar(&a.peer, "peer", "", "use this site, by its key: a peer ID or did:key")
	flags.StringVar(&a.as, "as", "", "with --site or --peer: act as this agent of yours (agentsite agents lists them)")
	flags.DurationVar(&a.wait, "wait", 0, fmt.Sprintf("with --site or --peer, and for claim: how long to try to connect (default: once, for %v; claim: %v)", peer.DefaultTimeout, claimPatience))
	flags.StringVar(&a.url, "url", "", "use the site at this address, such as http://127.0.0.1:8473")
	flags.StringVar(&a.tokenFile, "token-file", "", "with --url: the file with the site's token (default: the one in the data folder)")
	flags.StringVar(&a.caCert, "cacert", "", "with --url https://…: the file with the site's certificate, from agentsite identity --certificate")
	flags.BoolVar(&a.cbor, "cbor", false, "with --site or --url: use CBOR instead of JSON")
	flags.BoolVar(&a.json, "json", false, "print results as JSON, one per line")
	flags.SortFlags = false
	root.Flags().Bool("version", false, "print the version of this program")
	root.RegisterFlagCompletionFunc("site", a.completeSites)
	root.RegisterFlagCompletionFunc("as", completeAgents)
	root.MarkPersistentFlagDirname("data")
	setHelp(root)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })

	return root
}

// addCommands adds all commands.
func (a *app) addCommands(root *cobra.Command) {
	root.AddGroup(
		&cobra.Group{ID: groupEveryday, Title: "Every day:"},
		&cobra.Group{ID: groupBoard, Title: "The board and its configuration:"},
		&cobra.Group{ID: groupOwner, Title: "For owners:"},
		&cobra.Group{ID: groupNetwork, Title: "Other machines and agents:"},
	)
	root.AddCommand(
		a.runCommand(), a.demoCommand(), a.simulateCommand(), a.simCommand(), a.identityCommand(),
		a.backupCommand(), a.restoreCommand(), a.checkCommand(), a.configCommand(), a.reloadCommand(),
		a.schemaCommand(), a.guardCommand(), superviseCommand(), a.safeCommand(), a.relayCommand(),
		a.addCommand(), a.scanCommand(), a.doctorCommand(), a.pinoutCommand(), a.boardCommand(),
		a.driversCommand(), a.prepareCommand(), a.consoleCommand(),
		a.statusCommand(), a.logsCommand(), a.pointsCommand(), a.readCommand(), a.historyCommand(),
		a.whyCommand(), a.setCommand(), a.stopCommand(), a.resetCommand(), a.rulesCommand(),
		a.approveCommand(), a.journalCommand(), a.openCommand(),
		a.askCommand(), a.notifyCommand(), a.chatCommand(), a.llmCommand(), a.tasksCommand(),
		a.toolsCommand(),
		a.callCommand(), a.connectCommand(),
		a.claimCommand(), a.acceptCommand(), a.discoverCommand(), a.findCommand(), a.pingCommand(),
		a.realmCommand(), a.sitesCommand(), a.fleetCommand(), a.agentsCommand(), a.grantCommand(),
		a.delegateCommand(),
		a.tokenCommand(), a.grantsCommand(), a.revokeCommand(), a.ownersCommand(), a.clockCommand(),
		a.publicCommand(),
		a.updateCommand(), a.versionCommand(),
	)
	root.AddCommand(extraCommands()...)
	root.SetHelpCommand(helpCommand())
	root.InitDefaultCompletionCmd()
	strictCompletion(root)
	completeNoFiles(root)
	addExamples(root)
}

// strictCompletion makes cobra's completion command refuse unknown shells.
func strictCompletion(root *cobra.Command) {
	cmd, _, err := root.Find([]string{"completion"})
	if err != nil {
		return
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.Args = func(_ *cobra.Command, words []string) error {
		if len(words) > 0 {
			return fmt.Errorf("there is no completion for %q", clean(words[0]))
		}
		return nil
	}
}

// The groups of the commands.
const (
	groupEveryday = "everyday"
	groupBoard    = "board"
	groupOwner    = "owner"
	groupNetwork  = "network"
)

func defaultFolderHelp() string {
	f, err := state.DefaultFolder()
	if err != nil {
		return "none here"
	}
	return string(f) + "; commands to a running site use " + string(state.ServiceFolder) + " if none runs from there"
}

// folder returns the absolute path of the data folder.
func (a *app) folder() (state.Folder, error) {
	if a.data == "" {
		return state.DefaultFolder()
	}
	dir, err := filepath.Abs(a.data)
	return state.Folder(dir), err
}

// siteFolder returns the data folder of the site on this machine that a command uses.
func (a *app) siteFolder() (state.Folder, error) {
	if a.data == "" {
		return state.FindFolder()
	}
	return a.folder()
}
