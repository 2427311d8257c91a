// A provider that forgets every third answer, and says what its answers cost.
class Forgetful {
  constructor() { this.asked = 0; }
  id() { return 'forgetful'; }
  async callApi(prompt) {
    this.asked += 1;
    return {
      output: this.asked % 3 ? prompt : 'I forget',
      cost: prompt.length / 1024,
      tokenUsage: { total: prompt.length + 1, prompt: prompt.length, completion: 1 },
    };
  }
}
module.exports = Forgetful;
