// What the scripts share: running the tests of a client one after the other.

// Says "ok" and ends the process, or prints which test failed and why.
export async function run(tests, protocol) {
  for (const test of tests) {
    await test().catch((error) => {
      console.log(`${test.name} (RESP${protocol}): ${error.stack}`);
      process.exit(1);
    });
  }
  console.log("ok");
  process.exit(0);
}
