// Loaded before a program, it has every name be this machine.
import dns from 'node:dns'
dns.lookup = (host, options, done) => {
  done = done ?? options
  options.all ? done(null, [{ address: '127.0.0.1', family: 4 }]) : done(null, '127.0.0.1', 4)
}
