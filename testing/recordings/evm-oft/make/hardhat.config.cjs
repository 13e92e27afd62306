// One chain of the pair: its id comes from the environment, all else is fixed so that a run can be repeated.
const wei = (ether) => (BigInt(ether) * 10n ** 18n).toString();
const { ACCOUNTS } = require("./accounts.cjs");

module.exports = {
  solidity: "0.8.30",
  networks: {
    hardhat: {
      chainId: Number(process.env.CHAIN_ID),
      hardfork: "cancun",
      initialDate: "2025-01-01T00:00:00Z",
      accounts: Object.values(ACCOUNTS).map((privateKey) => ({ privateKey, balance: wei(1000) })),
    },
  },
};
