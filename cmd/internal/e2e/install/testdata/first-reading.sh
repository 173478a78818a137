# What the owner of a board types, from the package that make packages has made to the first
# reading: docs/raspberry-pi.md. A BME280 is wired up, and nobody configures anything.
set -e

# 1. Flash: a Debian is on the card, and the package is in this folder.
cd /root
dpkg -i agentsite.deb

# 3. Claim: the line is on the boot partition, once the site has started.
until test -e /boot/firmware/agentsite-claim.txt; do sleep 1; done
cat /boot/firmware/agentsite-claim.txt
eval "$(grep '^  agentsite claim ' /boot/firmware/agentsite-claim.txt) --name greenhouse"

# 4. First reading
agentsite read --site greenhouse
