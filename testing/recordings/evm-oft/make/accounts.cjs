// Keys of the throw-away chains; they are worth nothing anywhere else.
const key = (byte) => `0x${byte.repeat(32)}`;

exports.ACCOUNTS = {
  user: key("11"),
  // Another deployer on each chain, so that no contract has the same address on both.
  deployerA: key("a1"),
  deployerB: key("b1"),
  // Signs what the DVN attests and hands it in.
  verifier: key("44"),
  // Commits verifications and runs the executor contract.
  executor: key("55"),
};
